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
		Long: `List the models that WebLLM ` + page.WebLLM +
			` knows, those whose ids contain FILTER if it is given: how large their
weights are, where that is known (of models in the store, or from a mirror; "-" is not known), what video memory WebLLM says they
take, and whether the adapter needs shader-f16. Library and tokenizer come on top of the weights, with some MB. Without --mirror
nothing is asked of a network.`,
		Args: arguments(cobra.MaximumNArgs(1)),
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
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, for machines")
	c.Flags().StringVar(&mirror, "mirror",
		"", "an address or a folder with the public addresses' layout, to be asked for sizes")
	return c
}

// builtInCatalogue is that of the WebLLM that is built in.
func builtInCatalogue() (catalogue.Catalogue, error) {
	text, err := page.Catalogue()
	if err != nil {
		return catalogue.Catalogue{}, err
	}
	return catalogue.Parse(text)
}

// width is a terminal's; 0 elsewhere, where a line may be as long as it is.
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

// printList prints a table. Where it wouldn't fit the width, each model has a line for its id and one for its figures.
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
