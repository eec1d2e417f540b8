package compare_test

import (
	"math"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/foreign"
)

// Rows that another program wrote stand beside a run: their peaks are shown, nothing is set against them, and the run's
// own cells are called what they are called without them.
func TestImportedRowsBesideRun(t *testing.T) {
	rows, err := foreign.Open("../internal/foreign/testdata/profiler.csv")
	if err != nil {
		t.Fatal(err)
	}
	run := comparetest.Run(t, "mine", comparetest.Browser(2), comparetest.Native(2))
	alone, both := compare.Runs(run), compare.Runs(run, rows)
	for i := range alone.Cells {
		if both.Cells[i].Label != alone.Cells[i].Label {
			t.Errorf("%q became %q", alone.Cells[i].Label, both.Cells[i].Label)
		}
	}
	if len(both.Comparisons) != len(alone.Comparisons) || len(both.Parity) != len(alone.Parity) {
		t.Errorf("%d comparisons, %d without the rows", len(both.Comparisons), len(alone.Comparisons))
	}
	ollama, webllm := &both.Cells[2], &both.Cells[3]
	if ollama.Label != "ollama-run1" || webllm.Label != "webllm-run1" {
		t.Errorf("labels %q and %q", ollama.Label, webllm.Label)
	}
	for _, c := range []struct {
		cell       *compare.Cell
		figure, of string
		want       float64
	}{{ollama, figure.PeakRSS, "RSS sum", 1536.5}, {webllm, figure.PeakHeap, "JavaScript heap", 96.5}} {
		f := c.cell.Figure(c.figure)
		if !f.Known() || f.Center() != c.want || !strings.Contains(f.How, "another program") {
			t.Errorf("%s of %s: %+v", c.figure, c.cell.Label, f)
		}
		if p := c.cell.Points(); p.Of != c.of || p.Peak.Name != c.figure || p.Increase.Known() || p.Baseline.Known() {
			t.Errorf("points of %s: %+v", c.cell.Label, p)
		}
		if c.cell.Figure(figure.PeakPSS).Known() || c.cell.Parts != nil || c.cell.Device != nil {
			t.Errorf("%s has what no row tells", c.cell.Label)
		}
	}
	words := strings.Join(both.Comparability, "\n")
	if !strings.Contains(words, "ollama-run1; webllm-run1: imported, with unknown model") {
		t.Errorf("nothing is said of them:\n%s", words)
	}
	for _, c := range both.Runs[1].Checklist {
		if c.Item != explain.SeveralRuns && c.Answer != explain.Unknown {
			t.Errorf("%+v", c)
		}
	}
}

// Who asks for it gets ratios of what rows have, each marked.
func TestForeignRowsAgainstARun(t *testing.T) {
	rows, err := foreign.Open("../internal/foreign/testdata/profiler.csv")
	if err != nil {
		t.Fatal(err)
	}
	o := compare.Defaults()
	o.AllowDifferent = true
	r := compare.With(o, comparetest.Run(t, "mine", comparetest.Native(2)), rows)
	if len(r.Comparisons) != 1 || len(r.Comparisons[0].Ratios) != 1 {
		t.Fatalf("%+v", r.Comparisons)
	}
	got, llamacpp := r.Comparisons[0].Ratios[0], r.Cells[0].Figure(figure.PeakRSS).Center()
	if got.Figure != figure.PeakRSS || got.Ratio == nil || math.Abs(*got.Ratio-llamacpp/1536.5) > 1e-6 ||
		!strings.Contains(got.Different, "model, prompt and device of ollama-run1 are not known") {
		t.Errorf("%+v", got)
	}
}

// Two files with the same label stay apart.
func TestForeignRowsOfOneLabel(t *testing.T) {
	read := func(name string) *compare.Result {
		a, err := foreign.Read(name, []byte("timestamp,label,rss_mb\n1705314600,llama,5\n"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := foreign.Read("other.csv", []byte("timestamp,label,rss_mb\n1705314600,llama,6\n"))
		if err != nil {
			t.Fatal(err)
		}
		return compare.Runs(a, b)
	}
	r := read("one.csv")
	if r.Cells[0].Label == r.Cells[1].Label || !strings.Contains(r.Cells[0].Label, "one.csv") ||
		!strings.Contains(r.Cells[1].Label, "other.csv") {
		t.Errorf("%q and %q", r.Cells[0].Label, r.Cells[1].Label)
	}
}
