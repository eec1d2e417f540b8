package compare_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/internal/warning"
)

func TestFiguresOfALaunch(t *testing.T) {
	e := comparetest.Native(1)
	e.Vary, e.TTFT, e.Token, e.Load = 0, 10*time.Millisecond, 2*time.Millisecond, 300*time.Millisecond
	cell := compare.Runs(comparetest.Run(t, "one", e)).Cells[0]
	for name, want := range map[string]float64{figure.TTFT: 10, figure.DecodeTPS: 500, figure.LoadTime: 300,
		figure.PrefillTPS: 400, figure.Tokens: 64,
		figure.Prompt: 4, figure.Latency: 10 + 63*2 + 2, figure.SamplerUS: 60} {
		if f := cell.Figure(name); math.Abs(f.Center()-want) > 1e-6 || f.N != 1 || f.Note != evidence.TooFewRuns ||
			f.Interval != nil || f.How == "" {
			t.Errorf("%s: %+v, want %v once, without an interval", name, f, want)
		}
	}
	if f := cell.Figure(figure.Baseline); f.Known() || f.Absent != memory.NoBaseline {
		t.Errorf("baseline of an engine without a process before the load: %+v", f)
	}
	if peak, inc := cell.Figure(figure.PeakPSS), cell.Figure(figure.Increase); peak.Center() != inc.Center() ||
		!strings.Contains(inc.How, "If no process ran before the load, the increase is the whole peak") {
		t.Errorf("without a baseline the increase is the peak: %v and %v, %q", peak.Center(), inc.Center(), inc.How)
	}
}

func TestParity(t *testing.T) {
	noIDs := slices.Repeat([]int{record.NoID}, 64)
	for _, c := range []struct {
		name      string
		change    func(*comparetest.Engine)
		identical bool
		verdict   string
	}{
		{"same", func(e *comparetest.Engine) {}, true, "identical: 64 of 64 token ids"},
		{"one differs", func(e *comparetest.Engine) { e.IDs[6] = 511 }, false,
			"different from token 7 on: id 199 and id 511; 6 of 64 token ids agree"},
		{"shorter", func(e *comparetest.Engine) { e.IDs = e.IDs[:60] }, false,
			"identical as far as both go: 60 token ids"},
		{"no ids", func(e *comparetest.Engine) { e.IDs = noIDs }, true,
			"identical text; llamacpp reports no token ids"},
		{"no ids and no text", func(e *comparetest.Engine) { e.IDs, e.Text = noIDs, "" }, false,
			"not compared: llamacpp reports no token ids and no text"},
		{"no tokens", func(e *comparetest.Engine) { e.IDs, e.Text = nil, "" }, false,
			"not compared: llamacpp returned no tokens"},
		{"prompt", func(e *comparetest.Engine) { e.PromptIDs = []int{12, 44, 8} }, true, "tokenized differently"},
		{"failed", func(e *comparetest.Engine) { e.Failing = map[int]record.Class{1: record.OOM} }, false,
			"no counted launch of llamacpp"},
	} {
		b := comparetest.Native(1)
		c.change(&b)
		p := compare.Runs(comparetest.Run(t, "p", comparetest.Browser(1), b)).Parity[0]
		if p.Identical != c.identical || !strings.Contains(p.Verdict, c.verdict) {
			t.Errorf("%s: identical %v, %q; want %v, %q", c.name, p.Identical, p.Verdict, c.identical, c.verdict)
		}
	}
}

func TestRatiosOnOneDevice(t *testing.T) {
	a, b := comparetest.Browser(8), comparetest.Native(8)
	a.Device = b.Device
	b.Info.Policy["kv_dtype"] = "f16"
	c := compare.Runs(comparetest.Run(t, "x", a, b)).Comparisons[0]
	if c.Refused != "" || len(c.Ratios) != 5 || len(c.Caveats) != 1 ||
		c.Caveats[0] != "KV cache dtype differs: f16 and f32" {
		t.Fatalf("%+v", c)
	}
	for _, x := range c.Ratios {
		if !x.Significant || x.P <= 0 || x.P > 0.05 || x.Ratio == nil || *x.Ratio <= 0 || *x.Ratio == 1 {
			t.Errorf("%+v", x)
		}
	}
	a.Cell.Repetitions, b.Cell.Repetitions = 3, 3
	for _, x := range compare.Runs(comparetest.Run(t, "x", a, b)).Comparisons[0].Ratios {
		if x.Significant || !strings.Contains(x.Verdict, "too few launches") {
			t.Errorf("three launches a side can't be significant: %+v", x)
		}
	}
}

// TestMissingDataIsReported holds for records that lack what figures need: no panic, and JSON that holds no NaN.
func TestMissingDataIsReported(t *testing.T) {
	failed := comparetest.Browser(2)
	failed.Failing = map[int]record.Class{1: record.OOM, 2: record.OOM}
	mute := comparetest.Native(6)
	mute.IDs, mute.Text, mute.PromptIDs = nil, "", nil
	blind := comparetest.Native(2)
	blind.Processes = nil
	unknown := comparetest.Native(2)
	unknown.Device, unknown.Info = record.Device{}, record.EngineInfo{}
	for name, r := range map[string]*compare.Result{
		"no run":      compare.Runs(),
		"empty run":   compare.Runs(comparetest.Run(t, "empty")),
		"no launch":   compare.Runs(comparetest.Run(t, "none", comparetest.Browser(0), comparetest.Native(0))),
		"one engine":  compare.Runs(comparetest.Run(t, "one", comparetest.Native(2))),
		"all failed":  compare.Runs(comparetest.Run(t, "failed", failed, comparetest.Native(0))),
		"no tokens":   compare.Runs(comparetest.Run(t, "mute", mute, comparetest.Browser(1))),
		"no memory":   compare.Runs(comparetest.Run(t, "blind", blind)),
		"no identity": compare.Runs(comparetest.Run(t, "unknown", unknown, comparetest.Browser(2))),
	} {
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		said := answer.Of(r).Sentences()
		if len(said) == 0 || len(said) > 5 || len(r.Comparability) == 0 {
			t.Errorf("%s: answer %q, comparability %q", name, said, r.Comparability)
		}
		for _, s := range append(said, r.Comparability...) {
			if strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
				t.Errorf("%s: %q", name, s)
			}
		}
	}
}

// Cells of one engine that ran with other things can't be taken for one another, and what differs is said.
func TestVariantsOfOneEngineAreLabelled(t *testing.T) {
	old, sorted := comparetest.Browser(6), comparetest.Browser(6)
	old.Info.Version, old.Info.Origin = "0.2.80", "npm"
	full := *sorted.Info.Library
	full.Variant = "software kernels, full sort"
	sorted.Info.Library = &full
	base := comparetest.Browser(6)
	res := compare.Runs(comparetest.Run(t, "a", base), comparetest.Run(t, "a", old), comparetest.Run(t, "a", sorted),
		comparetest.Run(t, "a", comparetest.Native(6)))
	var labels []string
	for _, c := range res.Cells {
		labels = append(labels, c.Label)
	}
	want := []string{
		"webllm 0.2.86, software kernels, partial sort",
		"webllm 0.2.80 from npm, software kernels, partial sort",
		"webllm 0.2.86, software kernels, full sort",
		"llamacpp", // what an engine of one kind ran with is no part of its name
	}
	if !slices.Equal(labels, want) {
		t.Errorf("labels %q, want %q", labels, want)
	}
	check.Has(t, strings.Join(res.Comparability, "\n"), "version differs: 0.2.86 and 0.2.80",
		"model library differs: llmparity's (software kernels, partial sort) and "+
			"llmparity's (software kernels, full sort)",
		"kernels of webllm: llmparity's, not MLC's: software kernels, full sort")
}

// An engine introduces itself before it has a model, and says with which library it runs when it has one. A launch that
// failed in between doesn't take that back.
func TestLastEngineReportCounts(t *testing.T) {
	e := comparetest.Browser(2)
	e.Introduction = &record.EngineInfo{Name: "webllm", Version: "0.2.86"}
	e.Failing = map[int]record.Class{2: record.OOM}
	check.Has(t, compare.Runs(comparetest.Run(t, "twice", e)).Cells[0].With, "llmparity's library")
}

// What reads wait for a processor is no cost of reading.
func TestCostOfReadingIsCPUTime(t *testing.T) {
	busy := func(cpu int64) float64 {
		run := comparetest.Run(t, "run", comparetest.Native(6))
		for _, a := range run.Attempts {
			a.Cost = record.Cost{Reads: 10, ReadNS: 1000, ReadCPUNS: cpu}
		}
		r := compare.Runs(run)
		return r.Cells[0].Figure(figure.SamplerBusy).Center()
	}
	if old, got := busy(0), busy(250); !(old > 0) || got < old*0.24 || got > old*0.26 {
		t.Errorf("%g, and %g of reads that had a processor for a quarter of the time", old, got)
	}
}

// A kernel that reclaims idle memory is a warning only of launches that are long enough to have idle memory.
func TestReclaimWarnsOfLongLaunchesOnly(t *testing.T) {
	for idle, want := range map[float64]bool{60: false, 2: true, 0: true} {
		run := comparetest.Run(t, "short", comparetest.Native(6))
		run.Environment.Memory = &record.Memory{Reclaimers: []record.Reclaimer{{By: record.DAMON, IdleS: idle}}}
		run.Warnings = []record.Warning{{Code: "memory-reclaimed", Text: "the kernel reclaims idle memory"}}
		got := slices.ContainsFunc(compare.Runs(run).Warnings,
			func(w evidence.Warning) bool { return w.Code == warning.MemoryUncertain })
		if got != want {
			t.Errorf("idle after %g s: warned is %v", idle, got)
		}
	}
}
