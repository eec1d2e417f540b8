package compare_test

import (
	"path/filepath"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// side is a run of WebLLM in a browser, one cell, that may be changed.
func side(t *testing.T, change func(*comparetest.Engine)) *record.Run {
	t.Helper()
	e := comparetest.Browser(8)
	e.Info.Parts = map[string]string{}
	change(&e)
	return comparetest.Run(t, "builds", e)
}

// interleaved says of a run that its launches alternated with those of another.
func interleaved(base, run *record.Run) *record.Run {
	run.Meta.Against = filepath.Base(base.Dir)
	return run
}

func file(name, sum string) func(*comparetest.Engine) {
	return func(e *comparetest.Engine) {
		e.Info.Origin, e.Info.Parts[record.BundlePart] = record.OfFile+name, strings.Repeat(sum, 32)
	}
}

func TestSidesAreNamedByWhatDiffers(t *testing.T) {
	version := func(v string) func(*comparetest.Engine) {
		return func(e *comparetest.Engine) { e.Info.Title, e.Info.Version = "WebLLM", v }
	}
	context := func(n int) func(*comparetest.Engine) {
		return func(e *comparetest.Engine) { e.Cell.Model.Context = n }
	}
	browser := func(v string) func(*comparetest.Engine) {
		return func(e *comparetest.Engine) { e.Info.Parts["browser"] = v }
	}
	for what, c := range map[string]struct {
		was, is    func(*comparetest.Engine)
		base, name string
	}{
		"files":                    {file("main.js", "a0"), file("pr.js", "b1"), "main.js", "pr.js"},
		"files of one name":        {file("web.js", "a0"), file("web.js", "b1"), "web.js (a0a0a0a)", "web.js (b1b1b1b)"},
		"a file and a version":     {version("0.2.86"), file("pr.js", "b1"), "WebLLM 0.2.86", "pr.js"},
		"versions":                 {version("0.2.79"), version("0.2.86"), "WebLLM 0.2.79", "WebLLM 0.2.86"},
		"contexts":                 {context(512), context(1024), "context 512", "context 1024"},
		"browsers of one WebLLM":   {browser("Chrome/155.0"), browser("Chrome/156.0"), "Chrome/155.0", "Chrome/156.0"},
		"a file comes before all ": {file("main.js", "a0"), file("pr.js", "a0"), "main.js", "pr.js"},
	} {
		base := side(t, c.was)
		r := compare.Runs(base, interleaved(base, side(t, c.is)))
		if a, b := r.RunName(0), r.RunName(1); a != c.base || b != c.name {
			t.Errorf("%s: %q and %q, want %q and %q", what, a, b, c.base, c.name)
		}
		if r.Cells[0].Label != c.base || r.Cells[1].Label != c.name {
			t.Errorf("%s: labels %q and %q", what, r.Cells[0].Label, r.Cells[1].Label)
		}
	}
}

// What a record does not report, such as where a browser is, was recorded as requested.
func TestSidesAreNamedByWhatWasRequested(t *testing.T) {
	same := func(*comparetest.Engine) {}
	base := side(t, same)
	run := interleaved(base, side(t, same))
	if r := compare.Runs(base, run); r.Runs[0].Side != "" || r.RunName(0) == r.RunName(1) {
		t.Errorf("nothing differs: %q and %q", r.RunName(0), r.RunName(1))
	}
	run.Meta.Side = &record.Side{Role: record.RunSide, Differs: map[string]string{"chrome": "chrome-155/chrome"}}
	if r := compare.Runs(base, run); r.RunName(0) != "default chrome" || r.RunName(1) != "chrome chrome-155/chrome" {
		t.Errorf("%q and %q", r.RunName(0), r.RunName(1))
	}
	run.Meta.Against = "" // measured on another day
	if r := compare.Runs(base, run); r.Runs[1].Side != "" {
		t.Errorf("a run of its own is called %q", r.Runs[1].Side)
	}
}

func TestTitleNamesSlowerBuild(t *testing.T) {
	base := side(t, file("main.js", "a0"))
	slow := side(t, func(e *comparetest.Engine) {
		file("pr.js", "b1")(e)
		e.Token = e.Token * 3 / 2
	})
	a := answer.Of(compare.Runs(base, interleaved(base, slow)))
	check.Has(t, a.Title, "pr.js is ", "% slower than main.js; ")
	check.Has(t, a.Sub(), "main.js (sha256 a0a0a0a) and pr.js (sha256 b1b1b1b)", "8 launches each, alternating")
	same := answer.Of(compare.Runs(base, interleaved(base, side(t, file("copy.js", "a0")))))
	check.Has(t, same.Sub(), "main.js and copy.js (both sha256 a0a0a0a)")
	check.Has(t, same.Title, "copy.js and main.js: no difference above ")
	if len(same.Output.Headline) == 0 {
		t.Error("outputs of both sides are not compared")
	}
}

// The baseline side measured once more gives each difference the machine's noise, and is no side of its own.
func TestNoiseStandsBesideEachDifference(t *testing.T) {
	base := side(t, file("main.js", "a0"))
	run := interleaved(base, side(t, file("pr.js", "b1")))
	o := compare.Defaults()
	o.Noise = side(t, func(e *comparetest.Engine) {
		file("main.js", "a0")(e)
		e.TTFT *= 2
	})
	r := compare.With(o, base, run)
	if len(r.Cells) != 2 || len(r.Comparisons) != 1 || r.Noise == nil || r.Noise.Launches != 8 {
		t.Fatalf("%d cells, %d comparisons, noise %+v", len(r.Cells), len(r.Comparisons), r.Noise)
	}
	for _, x := range r.Comparisons[0].Ratios {
		switch n := x.Noise; {
		case n == nil || n.Interval == nil:
			t.Errorf("%s has no noise", x.Figure)
		case x.Figure == figure.TTFT && (n.Percent < 60 || n.Interval.Lo < 0):
			t.Errorf("time to first token doubled, and its noise is %.0f%% (%.0f to %.0f)", n.Percent, n.Interval.Lo,
				n.Interval.Hi)
		case x.Figure == figure.DecodeTPS && (n.Interval.Lo > 0 || n.Interval.Hi < 0):
			t.Errorf("decode did not change, and its noise is %g%%", n.Percent)
		}
	}
}
