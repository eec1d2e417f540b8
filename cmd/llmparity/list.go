package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"llmparity/assets/page"
	"llmparity/internal/cache"
	"llmparity/internal/catalogue"
	"llmparity/internal/fault"
)

// listed is a model of the catalogue, as model list shows it.
type listed struct {
	ID string `json:"id"`
	// WeightsB is what a download takes, but for the library and the tokenizer, which have some MB; absent where it
	// isn't known.
	WeightsB *int64   `json:"weights_bytes,omitempty"`
	VRAMMB   float64  `json:"vram_mb"` // as WebLLM states it
	F16      bool     `json:"needs_shader_f16"`
	Features []string `json:"required_features,omitempty"`
	Type     string   `json:"type"`
	Context  int      `json:"context,omitempty"`
	Stored   bool     `json:"stored"`
	StoredB  int64    `json:"stored_bytes,omitempty"` // all files
	// the mirror that a stored one is from; absent: the public addresses
	Source  string `json:"source,omitempty"`
	Model   string `json:"model"`
	Library string `json:"library"`
}

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
			models, err := list(c.Context(), filter, mirror, c.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(c.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(models)
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

// list gives the models whose ids contain filter, sorted. A mirror that can't be reached is told to warn, once.
func list(ctx context.Context, filter, mirror string, warn io.Writer) ([]listed, error) {
	known, err := builtInCatalogue()
	if err != nil {
		return nil, err
	}
	entries := slices.DeleteFunc(slices.Clone(known.Models), func(e catalogue.Entry) bool {
		return !strings.Contains(strings.ToLower(e.ID), strings.ToLower(filter))
	})
	if len(entries) == 0 {
		return nil, known.Unknown("no model of WebLLM's catalogue has %q in its id", filter)
	}
	slices.SortFunc(entries, func(a, b catalogue.Entry) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.ID), strings.ToLower(b.ID)), strings.Compare(a.ID, b.ID))
	})
	var sizes map[string]int64
	if mirror != "" {
		if sizes, err = catalogue.Sizes(ctx, entries, catalogue.Options{Mirror: mirror}); err != nil {
			if ctx.Err() != nil || fault.Of(err) == fault.Usage {
				return nil, err
			}
			fmt.Fprintln(warn, fault.OneLine(err.Error()))
		}
	}
	store := catalogue.Store(cache.Dir(os.Getenv))
	out := make([]listed, len(entries))
	for i, e := range entries {
		out[i] = listed{ID: e.ID, VRAMMB: e.VRAM, F16: e.Needs(catalogue.ShaderF16), Features: e.Features,
			Type:    e.Type.String(),
			Context: max(e.Context(), 0), Model: e.Model, Library: e.Library}
		p, err := catalogue.Open(store, e.ID)
		switch {
		case err == nil:
			n := p.Weights.Bytes()
			out[i].WeightsB, out[i].Stored, out[i].StoredB, out[i].Source = &n, true, p.Bytes(), p.Source
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fault.Wrap(fault.Unwritable, err, "make it readable, or name another cache folder in "+
				cache.Variable,
				"the store of models")
		}
		if n, ok := sizes[e.ID]; ok {
			out[i].WeightsB = &n
		}
	}
	return out, nil
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
func printList(w io.Writer, models []listed, width int) error {
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
