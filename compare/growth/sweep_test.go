package growth_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/compare/growth"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

func rateOf(s growth.Sweep, name string) growth.Rate {
	for _, r := range s.Rates {
		if r.Name == name {
			return r
		}
	}
	return growth.Rate{}
}

func TestContextsOfSeveralRunsAreOneSweep(t *testing.T) {
	const bytes = 1024
	var runs []*record.Run
	for _, context := range []int{4096, 1024, 16384} {
		e := comparetest.Native(4)
		e.Cell.Model.Context, e.Vary = context, 0
		e.Info.Policy = map[string]string{"kv_dtype": "f32", "weights_dtype": "f32", "context": fmt.Sprint(context),
			"threads": "1"}
		e.Processes[0].Loaded += float64(context) * bytes / record.MiB / 1.05
		runs = append(runs, comparetest.Run(t, fmt.Sprint("context-", context), e))
	}
	res := compare.Runs(runs...)
	if len(res.Sweeps) != 1 || res.Sweeps[0].Axis != growth.AxisContext {
		t.Fatalf("%+v", res.Sweeps)
	}
	s := res.Sweeps[0]
	if s.At[0] != 1024 || s.At[2] != 16384 || s.Cells[0] != 1 {
		t.Errorf("cells %v at %v", s.Cells, s.At)
	}
	if r := rateOf(s, figure.PeakPSS); math.Abs(r.Center()-bytes) > 60 || r.OfTheory == nil ||
		!strings.Contains(r.Verdict, "the calculated 1024 is within") {
		t.Errorf("%g, %+v, %q", r.Center(), r.Interval, r.Verdict)
	}
	runs[1].Environment.CPU = "another machine"
	if res := compare.Runs(runs...); len(res.Sweeps) != 1 || len(res.Sweeps[0].Cells) != 2 {
		t.Errorf("another machine's cell is in the sweep: %+v", res.Sweeps)
	}
}

// What went on in one launch is not independent, and must not be said to be.
func TestLineOverRepetitionsIsNotOverLaunches(t *testing.T) {
	for _, reused := range []bool{false, true} {
		var all []comparetest.Engine
		for n, length := range []int{16, 64, 256} {
			e := comparetest.Native(4)
			e.Cell.ID, e.Cell.PromptID, e.Cell.Prompt = 20+n, n+1, fmt.Sprintf("a prompt of %d tokens", length)
			e.PromptIDs, e.Vary, e.Reused, e.Cell.Reused = comparetest.IDs(length), 0, reused, reused
			e.Processes[0].Loaded += float64(length) * 40_000 / record.MiB
			all = append(all, e)
		}
		res := compare.Runs(comparetest.Run(t, "lengths", all...))
		if len(res.Sweeps) != 1 {
			t.Fatalf("%d sweeps", len(res.Sweeps))
		}
		how := rateOf(res.Sweeps[0], figure.PeakPSS).How
		if strings.Contains(how, "For each launch: ") == reused ||
			strings.Contains(how, "does not cover differences between launches") != reused {
			t.Errorf("reused %v: %s", reused, how)
		}
	}
}

// A log rounds sizes to a hundredth of a MiB, which moves the slope over short contexts: the result says by how much,
// and that what was calculated is within.
func TestRoundingOfTheLogIsSaid(t *testing.T) {
	var runs []*record.Run
	for context, logged := range map[int]float64{256: 0.12, 512: 0.25, 768: 0.38} {
		e := comparetest.Measured(comparetest.Native(6), nil)
		e.Cell.Model.Context = context
		e.Info.Policy = map[string]string{"kv_dtype": "f16", "weights_dtype": "f32", "context": fmt.Sprint(context)}
		runs = append(runs, comparetest.Logged(comparetest.Run(t, fmt.Sprint("ollama-", context), e),
			map[string]float64{"kv_reserved_bytes": math.Round(logged * record.MiB), "kv_used_bytes": 1}))
	}
	res := compare.With(compare.Rules{Titles: map[string]string{"llamacpp": "Ollama"}}, runs...)
	r := rateOf(res.Sweeps[0], figure.KVReserved)
	if res.Sweeps[0].Theory.Bytes != 512 || math.Abs(r.Center()-532.48) > 0.01 {
		t.Fatalf("%g bytes/token, %+v", r.Center(), res.Sweeps[0].Theory)
	}
	if r.Rounded == nil || r.Rounded.Low > 512 || r.Rounded.High < 532.48 || r.Rounded.Low < 500 ||
		r.Verdict != "as calculated, within the rounding of the engine's log ("+r.Rounded.String()+")" ||
		!strings.Contains(r.How, "The log rounds sizes to 0.01 MiB") {
		t.Errorf("%+v, %q, %q", r.Rounded, r.Verdict, r.How)
	}
	if text := answer.Of(res).Growth.Sentence(); !strings.Contains(text, "own log, whose rounding allows 512 to 553") {
		t.Error(text)
	}
}

// What engines reserve for each token of their context windows is found by what the page's ledger and a log tell, not
// by arithmetic: an engine that reserves half as much again as calculated is found to.
func TestReservedCacheIsFollowedOverContexts(t *testing.T) {
	const calculated, planted = 1024, 1536
	var runs []*record.Run
	for _, context := range []int64{256, 512, 1024} {
		page := comparetest.Page()
		page.KVReserved = 16<<10 + context*planted
		browser, native := comparetest.Measured(comparetest.Browser(6), page),
			comparetest.Measured(comparetest.Native(6), nil)
		for _, e := range []*comparetest.Engine{&browser, &native} {
			e.Cell.Model.Context = int(context)
			e.Info.Policy = map[string]string{"kv_dtype": "f32", "weights_dtype": "f32", "context": fmt.Sprint(context)}
		}
		runs = append(runs, comparetest.Run(t, fmt.Sprint("browser-", context), browser),
			comparetest.Logged(comparetest.Run(t, fmt.Sprint("native-", context), native),
				map[string]float64{"kv_reserved_bytes": float64(context * planted), "kv_used_bytes": 81 * calculated}))
	}
	res := compare.With(compare.Rules{Titles: map[string]string{"llamacpp": "llama.cpp"}}, runs...)
	if len(res.Sweeps) != 2 {
		t.Fatalf("%d sweeps, want one an engine: %+v", len(res.Sweeps), res.Sweeps)
	}
	card := answer.Of(res).Growth
	for _, want := range []string{"a token (the same in every launch; formula: 1",
		"a token by llama.cpp's own log (the same in every launch; formula: 1"} {
		if !strings.Contains(card.Sentence(), want) {
			t.Errorf("%s\nwant %s", card.Sentence(), want)
		}
	}
	if n := len(strings.Fields(card.Headline)); n > 8 || strings.Contains(card.Sentence(), "peak memory by") {
		t.Errorf("a headline of %d words, or a peak whose slope may be 0: %s", n, card.Sentence())
	}
	for _, s := range res.Sweeps {
		origin, rates := record.OriginMeasured, []string{figure.KVReserved, figure.Ledger}
		if s.Engine == "llamacpp" {
			origin, rates = record.OriginReported, rates[:1]
		}
		for _, name := range rates {
			r := rateOf(s, name)
			if r.N != 18 || r.Center() != planted || r.Interval == nil || r.Interval.Lo != planted ||
				r.Origin != origin || r.OfTheory == nil || *r.OfTheory != 1.5 ||
				r.Verdict != "more than the calculated 1024" {
				t.Errorf("%s, %s: %g in %+v of %d launches, %s, %v times calculated: %q", s.Engine, name, r.Center(),
					r.Interval, r.N, r.Origin, r.OfTheory, r.Verdict)
			}
		}
		settled := rateOf(s, growth.SettledPSS)
		if rateOf(s, figure.KVUsed).Known() || settled.N != 18 || settled.Origin != record.OriginMeasured {
			t.Errorf("%s: %+v", s.Engine, s.Rates)
		}
		if before := s.Engine == "webllm"; strings.Contains(settled.Title, "baseline") != before || before &&
			settled.Points[0].MiB > 700 {
			t.Errorf("%s: %s, %g MiB", s.Engine, settled.Title, settled.Points[0].MiB)
		}
		if s.Theory == nil || s.Theory.Bytes != calculated || s.Theory.Origin != record.OriginCalculated {
			t.Errorf("%s: %+v", s.Engine, s.Theory)
		}
	}
}
