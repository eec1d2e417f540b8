package main

import (
	"encoding/json"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
)

func TestCompareUsesFirstRunAsBaseline(t *testing.T) {
	root := t.TempDir()
	a := comparetest.Native(8)
	b := a
	b.Token += 300 * time.Microsecond
	other := comparetest.Native(8)
	other.Cell.ID, other.Cell.PromptID, other.Cell.Prompt = 7, 2, "There was"
	before, after := comparetest.Write(t, root, "before", a, other), comparetest.Write(t, root, "after", b, other)
	run := func(args ...string) (string, *compare.Result) {
		t.Helper()
		out := good(t, append([]string{"compare", before, after}, args...)...)
		res := &compare.Result{}
		if err := json.Unmarshal([]byte(out), res); err != nil {
			res = nil
		}
		return out, res
	}
	text, _ := run("--details", "--by", "engine,input_len")
	mentions(t, text, "\nafter compared with before, the baseline run\n", "\nGroups of cells\n", "over prompt (2)",
		" different\n", " no difference\n")
	_, res := run("--json", "--min-effect", "50")
	if res == nil || res.Statistics.MinEffect != 0.5 || len(res.Groups) != 0 || len(res.Families) != 1 ||
		!res.Families[0].Runs {
		t.Fatalf("%+v", res)
	}
	for _, x := range res.Comparisons[0].Ratios {
		if decode := x.Figure == figure.DecodeTPS; decode &&
			(x.Call != stats.TooSmall || x.Delta >= 0 || *x.Ratio <= 1) || !decode && x.Call != stats.Chance {
			t.Errorf("%+v", x)
		}
	}
	if _, res = run("--json", "--by", ""); len(res.Groups) != 2 || res.Groups[0].Name != "all cells" {
		t.Errorf("%+v", res.Groups)
	}
}
