package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"llmparity/assets/page"
	"llmparity/internal/cache"
	"llmparity/internal/catalogue"
	"llmparity/internal/record"
	"llmparity/internal/words"
)

func listCommand() *cobra.Command {
	var asJSON bool
	var mirror string
	c := &cobra.Command{
		Use:   "list [FILTER]",
		Short: "List the models of WebLLM's catalogue",
		Long: `List the models of WebLLM ` + page.WebLLM + `'s catalogue whose ids contain FILTER: size of the weights, GPU memory
that WebLLM states, and whether shader-f16 is needed. "-" means unknown: sizes are known for downloaded
models, or with --mirror. Nothing is downloaded.

Docs: ` + docsModels,
		Example: "  llmparity model list\n  llmparity model list q4f16_1 --json",
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			filter := ""
			if len(args) > 0 {
				filter = args[0]
			}
			known, err := builtInCatalogue()
			if err != nil {
				return err
			}
			models, err := known.List(c.Context(), filter, mirror, catalogue.Store(cache.Dir(os.Getenv)),
				func(line string) { fmt.Fprintln(c.ErrOrStderr(), line) })
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), models)
			}
			return printList(c.OutOrStdout(), models)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&mirror, "mirror",
		"", "address or folder that has the sizes; the same layout as the public site")
	return c
}

// builtInCatalogue is the catalogue of the embedded WebLLM.
func builtInCatalogue() (catalogue.Catalogue, error) {
	text, err := page.Catalogue()
	if err != nil {
		return catalogue.Catalogue{}, err
	}
	return catalogue.Parse(text)
}

// printList prints a table.
func printList(w io.Writer, models []catalogue.Listed) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tGPU MEMORY\tWEIGHTS\tSHADER-F16\tDOWNLOADED")
	for _, m := range models {
		size := "-"
		if m.WeightsB != nil {
			size = words.Size(*m.WeightsB)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", m.ID, words.Size(int64(m.VRAMMB*record.MiB)), size,
			word(m.F16, "needed"), word(m.Stored, "yes"))
	}
	return t.Flush()
}

func word(is bool, text string) string {
	if is {
		return text
	}
	return "-"
}
