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
	head := []string{"MODEL", "WEIGHTS", "VRAM", "F16", "STORE"}
	rows := [][]string{head}
	for _, m := range models {
		rows = append(rows, []string{m.ID, weights(m.WeightsB), fmt.Sprintf("%.0f MB", m.VRAMMB), word(m.F16, "needed"),
			word(m.Stored, "yes")})
	}
	columns := make([]int, len(head))
	for _, row := range rows {
		for i, cell := range row {
			columns[i] = max(columns[i], len(cell))
		}
	}
	total := 2 * (len(columns) - 1)
	for _, n := range columns {
		total += n
	}
	between := ""
	if narrow := width > 0 && total > width; narrow {
		columns[0], between = 0, "\n"
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-*s%s  %*s  %*s  %-*s  %s", columns[0], row[0], between, columns[1], row[1], columns[2],
			row[2],
			columns[3], row[3], row[4])
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

func weights(n *int64) string {
	switch {
	case n == nil:
		return "-"
	case *n < 10<<20:
		return fmt.Sprintf("%.1f MiB", float64(*n)/(1<<20))
	}
	return fmt.Sprintf("%.0f MiB", float64(*n)/(1<<20))
}

func word(is bool, text string) string {
	if is {
		return text
	}
	return "-"
}
