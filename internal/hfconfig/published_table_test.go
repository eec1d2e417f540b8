package hfconfig_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"llmparity/internal/hfconfig"
)

var update = flag.Bool("update", false, "write the tables of docs/reference/accuracy.md anew")

const page = "../../docs/reference/accuracy.md"

// The page's tables are made of what is tested above; -update writes them.
func TestPageHasThePublishedFigures(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := text
	tables := map[string]string{"published": publishedTable(t), "quantized": quantizedTable(t),
		"remembered": rememberedList()}
	for name, table := range tables {
		if want, err = between(want, name, table); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Equal(text, want) {
		return
	}
	if !*update {
		t.Fatal("docs/reference/accuracy.md has other figures than those that are tested: go test ./internal/hfconfig -run Page -update")
	}
	if err := os.WriteFile(page, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// between puts a table in the place of what a page has between two marks.
func between(text []byte, name, table string) ([]byte, error) {
	start, end := "<!-- "+name+": start -->\n", "<!-- "+name+": end -->"
	head, rest, ok := bytes.Cut(text, []byte(start))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return nil, fmt.Errorf("%s has no marks %q and %q", page, start, end)
	}
	return fmt.Appendf(nil, "%s%s%s%s%s", head, start, table, end, tail), nil
}

func publishedTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| model | parameters | weights, bytes | KV cache, bytes a token | where to look it up |\n|---|---|---|---|---|\n")
	for _, r := range published {
		m, err := hfconfig.Open("testdata/" + r.model + ".json")
		if err != nil {
			t.Fatal(err)
		}
		size, cache := "-", "-"
		if r.weights.found() {
			size = fmt.Sprint(weights(t, r.model, r.weights.as), " ", r.weights.as)
		}
		if r.kv.found() {
			cache = fmt.Sprint(2 * m.KVValues())
		}
		sizes := figure{source: r.sizes}
		places := []string{r.parameters.place("parameters"), r.weights.place("weights"), r.kv.place("cache"),
			sizes.place("sizes")}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", r.model, m.Parameters(), strings.TrimSpace(size), cache,
			joined(places))
	}
	return b.String()
}

func quantizedTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| model | as | bytes | published | where to look it up |\n|---|---|---|---|---|\n")
	for _, q := range quantized {
		printed := q.printed
		if printed == "" {
			printed = fmt.Sprint(q.value)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s |\n", q.model, q.as, weights(t, q.model, q.as), printed, q.source)
	}
	return b.String()
}

func rememberedList() string {
	var names []string
	for _, r := range remembered {
		names = append(names, fmt.Sprintf("%s (%d)", r.model, r.parameters.value))
	}
	return strings.Join(names, ", ") + "\n"
}

// place is what a cell of the table says of where a figure is from, and of how it is printed there.
func (f figure) place(what string) string {
	switch {
	case !f.found():
		return ""
	case f.printed != "":
		return what + ": " + f.source + " (" + f.printed + ")"
	default:
		return what + ": " + f.source
	}
}

func joined(parts []string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return strings.Join(some, "; ")
}
