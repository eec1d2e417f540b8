package hfconfig_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/hfconfig"
)

var update = flag.Bool("update", false, "write the tables of docs/reference/accuracy.md")

const page = "../../../docs/reference/accuracy.md"

// The tables of the page are generated from figures.json; -update writes them.
func TestPageHasThePublishedFigures(t *testing.T) {
	text := check.Read(t, page)
	want := string(text)
	for name, table := range map[string]string{"published": publishedTable(t), "quantized": quantizedTable(t),
		"remembered": rememberedList()} {
		start, end := "<!-- "+name+": start -->\n", "<!-- "+name+": end -->"
		head, rest, ok := strings.Cut(want, start)
		_, tail, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s has no marks %q and %q", page, start, end)
		}
		want = head + start + table + end + tail
	}
	switch {
	case want == string(text):
	case *update:
		check.Err(t, os.WriteFile(page, []byte(want), 0o644))
	default:
		t.Errorf("%s is out of date: go test ./internal/models/hfconfig -run Page -update", page)
	}
}

func publishedTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| model | parameters | weights, bytes | KV cache, bytes a token | where to look it up |\n|---|---|---|---|---|\n")
	for _, r := range figures().Published {
		m, err := hfconfig.Open("testdata/" + r.Model + ".json")
		check.Err(t, err)
		size, cache := "-", "-"
		if r.Weights.Source != "" {
			size = strings.TrimSpace(fmt.Sprint(weights(t, r.Model, r.Weights.As), " ", r.Weights.As))
		}
		if r.KV.Source != "" {
			cache = fmt.Sprint(2 * hfconfig.KVValues(m.Caches))
		}
		var places []string
		for i, f := range []figure{r.Parameters, r.Weights, r.KV, {Source: r.Sizes}} {
			if f.Source == "" {
				continue
			}
			place := []string{"parameters: ", "weights: ", "cache: ", "sizes: "}[i] + f.Source
			if f.Printed != "" {
				place += " (" + f.Printed + ")"
			}
			places = append(places, place)
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", r.Model, m.Parameters(), size, cache,
			strings.Join(places, "; "))
	}
	return b.String()
}

func quantizedTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| model | as | bytes | published | where to look it up |\n|---|---|---|---|---|\n")
	for _, r := range figures().Quantized {
		w := r.Weights
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s |\n", r.Model, w.As, weights(t, r.Model, w.As),
			cmp.Or(w.Printed, fmt.Sprint(w.Value)), w.Source)
	}
	return b.String()
}

func rememberedList() string {
	var names []string
	for _, r := range figures().Remembered {
		names = append(names, fmt.Sprintf("%s (%d)", r.Model, r.Parameters.Value))
	}
	return strings.Join(names, ", ") + "\n"
}
