package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"llmparity/cmd/llmparity/help"
	"llmparity/docs/reference/schemas"
	"llmparity/internal/kit/fault"
)

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of an output format",
		Long: "Print the JSON Schema (draft 2020-12) of a plan or an output format. NAME is one of\n" +
			strings.Join(schemas.Names(), ", ") + ". Without NAME, list them.\n\nFormats: docs/reference/formats.md",
		Example:   "  llmparity schema\n  llmparity schema plan\n  llmparity schema result > result.schema.json",
		Args:      arguments(cobra.MaximumNArgs(1)),
		ValidArgs: schemas.Names(),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listSchemas(c.OutOrStdout())
			}
			text, err := schemas.Text(args[0])
			if err != nil {
				return fault.New(fault.Usage, help.DidYouMean(args[0], schemas.Names()), "unknown schema %q", args[0])
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
}

// listSchemas prints the name of each schema and what the document is, in a line each.
func listSchemas(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, name := range schemas.Names() {
		text, err := schemas.Text(name)
		if err != nil {
			return err
		}
		var about struct{ Title string }
		if err := json.Unmarshal(text, &about); err != nil {
			return fmt.Errorf("reading the schema %s: %w", name, err)
		}
		fmt.Fprintf(t, "%s\t%s\n", name, about.Title)
	}
	return t.Flush()
}
