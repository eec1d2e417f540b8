package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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
			return printList(c.OutOrStdout(), models, width(c.OutOrStdout()))
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

// width is the terminal's; 0 elsewhere: lines may be long.
func width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	n, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return n
}

// printList prints a table. In a narrow terminal, a model has one line for its id and one for the rest.
func printList(w io.Writer, models []catalogue.Listed, width int) error {
	rows := [][]any{{"MODEL", "GPU MEMORY", "WEIGHTS", "SHADER-F16", "DOWNLOADED"}}
	longest := 0
	for _, m := range models {
		size := "-"
		if m.WeightsB != nil {
			size = words.Size(*m.WeightsB)
		}
		rows = append(rows, []any{m.ID, words.Size(int64(m.VRAMMB * record.MiB)), size, word(m.F16, "needed"),
			word(m.Stored, "yes")})
		longest = max(longest, len(m.ID))
	}
	const columns = "  %10s  %10s  %-10s  %s"
	format := fmt.Sprintf("%%-%ds", longest) + columns
	if width > 0 && longest+50 > width {
		format = "%s\n" + columns
	}
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf(format, row...), " ")); err != nil {
			return err
		}
	}
	return nil
}

func word(is bool, text string) string {
	if is {
		return text
	}
	return "-"
}
