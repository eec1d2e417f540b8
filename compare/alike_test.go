package compare_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

func warnedOf(r *compare.Result, code string) (texts []string) {
	for _, w := range slices.Concat(r.Warnings, r.Notes) {
		if w.Code == code {
			texts = append(texts, w.Where+": "+w.Text)
		}
	}
	return texts
}

func TestRepetitionsInOneLaunch(t *testing.T) {
	e := comparetest.Browser(6)
	e.Reused, e.Warmup, e.Cell.Reused = true, true, true
	run := comparetest.Run(t, "reused", e)
	r := compare.Runs(run)
	c := r.Cells[0]
	if c.Launches.Counted != 6 || c.Launches.Opened != 1 {
		t.Errorf("launches: %+v", c.Launches)
	}
	for name, n := range map[string]int{figure.PeakPSS: 1, figure.PeakUSS: 1, figure.PeakRSS: 1, figure.Increase: 1,
		figure.Baseline:   1,
		figure.PostWarmup: 1, figure.LoadTime: 1, figure.TTFT: 6, figure.Retained: 1} {
		if f := c.Figure(name); f.N != n {
			t.Errorf("%s has %d values, want %d", name, f.N, n)
		}
	}
	base := c.Figure(figure.Baseline)
	if base.Center() < 100 {
		t.Errorf("baseline %+v", base)
	}
	if got := c.Figure(figure.Increase); math.Abs(
		got.Center()-(c.Figure(figure.PeakPSS).Center()-base.Center())) > 1e-5 ||
		!strings.Contains(got.How, "over all of its repetitions") {
		t.Errorf("increase %+v", got)
	}
	if held := c.Figure(figure.Retained).Center(); held < 100 {
		t.Errorf("retained %v, the processes of baseline and unload are the same", held)
	}
	if w := warnedOf(r, "shared-launch"); len(w) != 1 || !strings.Contains(w[0], "6 repetitions ran in 1 launch") {
		t.Errorf("warnings %q", w)
	}
	fresh := comparetest.Native(6)
	fresh.Device = e.Device
	both := compare.Runs(comparetest.Run(t, "both", e, fresh))
	if got := both.Comparisons[0]; len(got.Ratios) != 0 || !strings.Contains(got.Refused, "isolation") {
		t.Errorf("cells of different isolation: %+v", got)
	}
	if w := warnedOf(compare.Runs(comparetest.Run(t, "fresh", fresh)), "shared-launch"); len(w) != 0 {
		t.Errorf("launches of their own: %q", w)
	}
}

// The load takes more than what comes after it, and lies in the first repetition alone.
func TestPeakOfReusedLaunchSpansRepetitions(t *testing.T) {
	e := comparetest.Browser(6)
	e.Reused, e.Cell.Reused, e.Vary = true, true, 0.2
	run := comparetest.Run(t, "reused", e)
	highest := 0.0
	for i := range run.Attempts[0].Totals {
		total := &run.Attempts[0].Totals[i]
		if p, _ := run.Attempts[0].Phase(record.Load); total.NS <= p.EndNS {
			total.PSS, total.RSS = 2*total.PSS, 2*total.RSS
		}
		if !math.IsNaN(total.PSS) {
			highest = max(highest, total.PSS)
		}
	}
	for _, noPSS := range []bool{false, true} {
		if noPSS {
			for _, a := range run.Attempts {
				for i := range a.Totals {
					a.Totals[i].PSS, a.Totals[i].USS = math.NaN(), math.NaN()
				}
			}
		}
		c := compare.Runs(run).Cells[0]
		p := c.Points()
		if p.Peak.Center() < p.Warm.Center() || p.Warm.Center() < p.Baseline.Center() || p.Peak.N != 1 ||
			p.Increase.N != 1 {
			t.Errorf("%s: baseline %v, after warm-up %v, peak %v", p.Of, p.Baseline.Center(), p.Warm.Center(),
				p.Peak.Center())
		}
		if !noPSS && math.Abs(p.Peak.Center()-highest) > 1e-3 || c.Representative != 1 {
			t.Errorf("peak %v, the highest reading is %v; representative %d", p.Peak.Center(), highest,
				c.Representative)
		}
	}
}

func TestRepetitionsInOneLaunchAreNotIndependent(t *testing.T) {
	a, b := comparetest.Native(6), comparetest.Native(6)
	b.Cell.ID, b.Cell.Engine = 3, "slower"
	b.TTFT, b.Token = 9*b.TTFT, 9*b.Token
	fresh := compare.Runs(comparetest.Run(t, "fresh", a, b)).Comparisons[0].Ratios
	a.Reused, b.Reused, a.Cell.Reused, b.Cell.Reused = true, true, true, true
	reused := compare.Runs(comparetest.Run(t, "reused", a, b)).Comparisons[0].Ratios
	if len(reused) != len(fresh) || len(reused) < 4 {
		t.Fatalf("%d and %d ratios", len(reused), len(fresh))
	}
	for i, r := range reused {
		if r.Significant || r.P != 1 || !strings.Contains(
			r.Verdict, "too few launches to compare (1 and 1)") {
			t.Errorf("%+v", r)
		}
		if timed := r.Figure == figure.TTFT || r.Figure == figure.DecodeTPS ||
			r.Figure == figure.PrefillTPS; fresh[i].Significant != timed {
			t.Errorf("in launches of their own: %+v", fresh[i])
		}
	}
}

func TestMissingCapabilityIsMarked(t *testing.T) {
	r := compare.Runs(comparetest.Run(t, "flags", comparetest.Native(6), comparetest.Served(6)))
	c := r.Cells[1]
	if got := c.Figure(figure.Tokens); got.Center() != 41 || !strings.Contains(got.How, "as the engine counts them") {
		t.Errorf("tokens: %+v", got)
	}
	for _, code := range []string{"stops-at-end", "no-token-ids"} {
		if w := warnedOf(r, code); len(w) != 1 || !strings.HasPrefix(w[0], "served: ") {
			t.Errorf("%s: %q", code, w)
		}
	}
	p := r.Parity[0]
	if p.Identical || !strings.Contains(p.Verdict, "identical text as far as both go: 40 bytes") ||
		!strings.Contains(p.Verdict, "ended after 64 tokens (length)") ||
		!strings.Contains(p.Verdict, "after 41 (stop)") {
		t.Errorf("parity: %q", p.Verdict)
	}
	if !strings.Contains(said(r, "Output"), "after 41 (stop)") {
		t.Errorf("the answer does not give the lengths: %q", r.Verdict)
	}
	if !c.Self.Identical || c.Self.Verdict != "all 6 requests gave the same text" {
		t.Errorf("with itself: %+v", c.Self)
	}
	if w := warnedOf(r, "token-times"); len(w) != 1 || !strings.HasPrefix(w[0], "served: ") {
		t.Errorf("pieces: %q", w)
	}
	if f := c.Figure(figure.DecodeTPS); f.Known() ||
		f.Absent != "41 tokens arrived in 20 pieces; their times are not known" {
		t.Errorf("decode of a few pieces: %+v", f)
	}
}

// An engine that hands over what lay in a buffer tells no decode span.
func TestTokensThatCameAtOnceAreNoDecode(t *testing.T) {
	e := comparetest.Native(3)
	e.Usage = func(u *record.Usage) { u.Spans = u.Spans[:1] }
	c := compare.Runs(comparetest.Run(t, "buffered", e)).Cells[0]
	want := fmt.Sprintf("the %d tokens arrived at once; their times are not known", len(e.IDs))
	if f := c.Figure(figure.DecodeTPS); f.Known() || f.Absent != want {
		t.Errorf("%+v, want none: %s", f, want)
	}
	if f := c.Figure(figure.TTFT); !f.Known() {
		t.Errorf("no time to the first token: %+v", f)
	}
}

func TestRatiosOfPiecesAreMarked(t *testing.T) {
	served := comparetest.Served(6)
	served.IDs = slices.Repeat([]int{record.NoID}, 38)
	r := compare.Runs(comparetest.Run(t, "pieces", comparetest.Native(6), served))
	seen := 0
	for _, ratio := range r.Comparisons[0].Ratios {
		lengths := strings.Contains(ratio.Note, "lengths differ: 64")
		pieces := strings.Contains(ratio.Note, "served reports pieces of text")
		timed := ratio.Figure == figure.DecodeTPS || ratio.Figure == figure.TTFT || ratio.Figure == figure.PrefillTPS
		if (ratio.Figure == figure.DecodeTPS) != lengths || timed != pieces ||
			!strings.Contains(ratio.Verdict, ratio.Note) {
			t.Errorf("%s: note %q, %q", ratio.Figure, ratio.Note, ratio.Verdict)
		}
		if timed {
			seen++
		}
	}
	caveat := func(s string) bool { return strings.Contains(s, "not quite alike") }
	if seen != 3 || !slices.ContainsFunc(r.Comparisons[0].Caveats, caveat) {
		t.Errorf("%d ratios of times, caveats %q", seen, r.Comparisons[0].Caveats)
	}
	other := comparetest.Served(6)
	other.Cell.ID, other.Cell.Engine, other.IDs = 4, "other", served.IDs
	for _, ratio := range compare.Runs(comparetest.Run(t, "both", served, other)).Comparisons[0].Ratios {
		if ratio.Note != "" {
			t.Errorf("of two that report pieces: %q", ratio.Note)
		}
	}
}

// timed are the ratios that a prompt's cache has a part in.
func timed(r *compare.Result) (ttft, prefill bool) {
	for _, ratio := range r.Comparisons[0].Ratios {
		ttft, prefill = ttft || ratio.Figure == figure.TTFT, prefill || ratio.Figure == figure.PrefillTPS
	}
	return ttft, prefill
}

func TestPromptsFromACacheThatDoesNotTell(t *testing.T) {
	tells := func(e *comparetest.Engine, n int) {
		usage := e.Usage
		e.Usage = func(u *record.Usage) {
			if usage != nil {
				usage(u)
			}
			u.CachedTokens = n
		}
	}
	const ratios, none = true, false
	for _, c := range []struct {
		name               string
		change             func(e *comparetest.Engine)
		prefill, cached    bool
		alone, withItsLike bool // ratios against an engine without a cache, and against the same
	}{
		{"told", func(e *comparetest.Engine) { tells(e, 0) }, true, true, ratios, ratios},
		{"a BOS", func(e *comparetest.Engine) { tells(e, 1) }, true, true, ratios, ratios},
		{"more", func(e *comparetest.Engine) { tells(e, 2) }, true, true, none, ratios},
		{"untold by a fresh one", func(e *comparetest.Engine) { tells(e, record.CacheUnknown) }, true, false, ratios,
			ratios},
		{"untold by one that ran already", func(e *comparetest.Engine) {
			tells(e, record.CacheUnknown)
			e.Cell.Isolation = record.OfServer
		}, false, false, none, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b, off := comparetest.Served(6), comparetest.Served(6), comparetest.Served(6)
			for _, e := range []*comparetest.Engine{&a, &b} {
				e.Cell.PromptCache = record.CacheOn
				c.change(e)
			}
			b.Cell.ID, b.Cell.Engine = 4, "like"
			off.Cell.ID, off.Cell.Engine, off.Cell.Isolation = 5, "off", a.Cell.Isolation
			for _, beside := range []struct {
				other comparetest.Engine
				want  bool
			}{{off, c.alone}, {b, c.withItsLike}} {
				r, want := compare.Runs(comparetest.Run(t, beside.other.Cell.Engine, a, beside.other)), beside.want
				if ttft, prefill := timed(r); ttft != want || prefill != want {
					t.Errorf("%s: ratios: TTFT %v, prefill %v, want %v", r.Runs[0].Name, ttft, prefill, want)
				}
				cell := r.Cells[0]
				if f, g := cell.Figure(figure.PrefillTPS), cell.Figure(figure.Cached); f.Known() != c.prefill ||
					g.Known() != c.cached {
					t.Errorf("prefill %+v, cached %+v", f, g)
				}
				if w := append(warnedOf(r, "prompt-cache"), warnedOf(r, "prompt-cache-on")...); len(w) == 0 {
					t.Error("no warning")
				}
			}
		})
	}
	// In a launch that is reused the prompt was asked before, but for the first time.
	e := comparetest.Served(6)
	e.Cell.PromptCache, e.Reused, e.Cell.Reused = record.CacheOn, true, true
	tells(&e, record.CacheUnknown)
	r := compare.Runs(comparetest.Run(t, "reused", e))
	if f, g := r.Cells[0].Figure(figure.PrefillTPS), r.Cells[0].Figure(figure.Cached); f.N != 1 || g.Known() {
		t.Errorf("prefill %+v, cached %+v", f, g)
	}
	// Where a cache is off nobody need tell.
	off := comparetest.Served(6)
	tells(&off, record.CacheUnknown)
	if f := compare.Runs(comparetest.Run(t, "off", off)).Cells[0].Figure(figure.Cached); !f.Known() ||
		f.Center() != 0 {
		t.Errorf("cached %+v", f)
	}
}

func TestDifferingLaunchesAreReported(t *testing.T) {
	run := func(change func(a *record.Attempt)) *compare.Result {
		r := comparetest.Run(t, "differ", comparetest.Native(6), comparetest.Served(6))
		change(r.Attempts[3])
		return compare.Runs(r)
	}
	for name, change := range map[string]func(e *record.EventAt){
		"version": func(e *record.EventAt) {
			if e.Engine != nil {
				other := *e.Engine
				other.Version = "b2"
				e.Engine = &other
			}
		},
		"device": func(e *record.EventAt) {
			if e.Device != nil {
				e.Device = &record.Device{Class: record.CPU, Name: "another CPU"}
			}
		},
	} {
		change := func(a *record.Attempt) {
			for i := range a.Events {
				change(&a.Events[i])
			}
		}
		r := run(change)
		if w := warnedOf(r, "launches-differ"); len(w) != 1 || !strings.Contains(w[0], name+" was") {
			t.Errorf("%s: warnings %q", name, w)
		}
		if c := r.Comparisons[0]; len(c.Ratios) != 0 || !strings.Contains(c.Refused, name+" was") {
			t.Errorf("%s: %+v", name, c)
		}
		// What does not count says nothing of what does.
		r = run(func(a *record.Attempt) { change(a); a.Status = record.Failed })
		if w := warnedOf(r, "launches-differ"); len(w) != 0 || len(r.Comparisons[0].Ratios) == 0 {
			t.Errorf("%s of a launch that failed: %q, %+v", name, w, r.Comparisons[0])
		}
	}
}

func TestWarmUpDoesNotDescribeCell(t *testing.T) {
	e := comparetest.Native(6)
	e.Warmup = true
	r := comparetest.Run(t, "warm", e)
	for i, at := range r.Attempts[0].Events {
		if at.Engine != nil {
			r.Attempts[0].Events[i].Engine = &record.EngineInfo{Name: "n", Version: "of the warm-up",
				Parts:  map[string]string{"a": "b", "c": "d"},
				Policy: map[string]string{"1": "", "2": "", "3": "", "4": "", "5": ""}}
		}
		if at.Device != nil {
			r.Attempts[0].Events[i].Device = &record.Device{Class: record.GPU, Name: "of the warm-up"}
		}
	}
	if c := compare.Runs(r).Cells[0]; c.Engine.Version != "b11434" || c.Device.Class != record.CPU {
		t.Errorf("%+v on %+v", c.Engine, c.Device)
	}
}

func TestCappedContextIsReported(t *testing.T) {
	for longest, want := range map[int]bool{0: false, 256: false, 8192: true} {
		e := comparetest.Native(1)
		e.Cell.Model.MaxContext = longest
		if with := compare.Runs(comparetest.Run(t, "capped", e)).Cells[0].With; strings.Contains(
			with, "capped at 256 of the model's 8192") != want {
			t.Errorf("%d: %q", longest, with)
		}
	}
}

func TestNoRatioOnDevicesOfNoKnownClass(t *testing.T) {
	for _, class := range []record.DeviceClass{"unknown", "npu"} {
		a, b := comparetest.Native(6), comparetest.Served(6)
		a.Device.Class, b.Device.Class = class, class
		if c := compare.Runs(comparetest.Run(t, "unknown", a, b)).Comparisons[0]; len(c.Ratios) != 0 ||
			!strings.Contains(c.Refused, "unknown class of device") {
			t.Errorf("%s: %+v", class, c)
		}
	}
}

func TestTextsAreNotCalledTokens(t *testing.T) {
	var all []comparetest.Engine
	for i := range 3 {
		e := comparetest.Served(2)
		e.Cell.ID, e.Cell.Engine = i+1, []string{"a", "b", "c"}[i]
		all = append(all, e)
	}
	r := compare.Runs(comparetest.Run(t, "texts", all...))
	if v := said(r, "Output"); !strings.HasSuffix(
		v, "All 3 pairs of cells generated identical text from the same weights and prompt.") {
		t.Error(v)
	}
	r = compare.Runs(comparetest.Run(t, "mixed", comparetest.Native(2), comparetest.Browser(2), all[2]))
	if v := said(r, "Output"); !strings.Contains(
		v, "1 of 3 pairs of cells generated identical output (1 by tokens, 2 by text)") {
		t.Error(v)
	}
}

func TestCachedPromptsAreNotCompared(t *testing.T) {
	cached := comparetest.Served(6)
	cached.IDs = slices.Repeat([]int{record.NoID}, 41)
	cached.Cell.PromptCache = record.CacheOn
	usage := cached.Usage
	cached.Usage = func(u *record.Usage) { usage(u); u.CachedTokens = 3 }
	r := compare.Runs(comparetest.Run(t, "cache", comparetest.Native(6), cached))
	if w := warnedOf(r, "prompt-cache"); len(w) != 1 || !strings.Contains(w[0], "3 of 4 prompt tokens") {
		t.Errorf("warnings %q", w)
	}
	if w := warnedOf(r, "prompt-cache-on"); len(w) != 0 {
		t.Errorf("a cache that tells: %q", w)
	}
	c := r.Comparisons[0]
	figures := map[string]bool{}
	for _, ratio := range c.Ratios {
		figures[ratio.Figure] = true
	}
	if figures[figure.TTFT] || figures[figure.PrefillTPS] || !figures[figure.DecodeTPS] ||
		!figures[figure.PeakPSS] {
		t.Errorf("ratios of %v", figures)
	}
	if !slices.ContainsFunc(c.Caveats, func(
		s string) bool {
		return strings.Contains(s, "prompt cache off for llamacpp, on, 3 tokens from it for served")
	}) {
		t.Errorf("caveats %q", c.Caveats)
	}
}

func TestGrowthFallsBackToRSS(t *testing.T) {
	e, native := comparetest.Browser(6), comparetest.Native(6)
	e.NoPSS, native.NoPSS = true, true
	r := compare.Runs(comparetest.Run(t, "rss", e, native))
	p := r.Cells[0].Points()
	if p.Of != "RSS sum" || !p.Baseline.Known() || p.Warm.Center() <= p.Baseline.Center() ||
		p.Peak.Center() < p.Warm.Center() ||
		math.Abs(p.Peak.Center()-p.Baseline.Center()-p.Increase.Center()) > 25 {
		t.Errorf("%s: %v, %v, %v, %v", p.Of, p.Baseline.Center(), p.Warm.Center(), p.Peak.Center(), p.Increase.Center())
	}
	q := r.Cells[1].Points()
	if q.Baseline.Known() || q.Baseline.Absent != memory.NoBaseline || !q.Warm.Known() ||
		q.Increase.Center() != q.Peak.Center() {
		t.Errorf("without a process before the load: %+v", q)
	}
	for _, pss := range []string{figure.PeakPSS, figure.Increase, figure.PostWarmup} {
		if f := r.Cells[0].Figure(pss); f.Known() || f.Absent == "" {
			t.Errorf("%s: %+v", pss, f)
		}
	}
	e.NoPSS, e.Load = false, time.Second
	if p := compare.Runs(comparetest.Run(t, "pss", e)).Cells[0].Points(); p.Of != "total PSS" || !p.Increase.Known() {
		t.Errorf("with PSS: %+v", p)
	}
}

func TestReportedFiguresHaveTheirUnits(t *testing.T) {
	e := comparetest.Native(1)
	e.Reported = func(_, _ time.Duration) map[string]float64 {
		return map[string]float64{"total_duration": 1, "eval_count": 64, "cached_tokens": 0, "predicted_ms": 5,
			"eval_tokens_per_second": 9, "kv_cache_bytes": 7, "odd": 1,
			"time_per_output_token_s": 1, "total_tokens": 68, "tokens_per_s": 1, "requests_per_s": 1,
			"energy_per_tokens": 1}
	}
	want := map[string][2]string{"total_duration": {"ns", figure.Latency}, "eval_count": {"tokens", figure.Tokens},
		"cached_tokens": {"tokens", figure.Cached},
		"predicted_ms":  {"ms", ""}, "eval_tokens_per_second": {"tokens/s", figure.DecodeTPS},
		"kv_cache_bytes": {"bytes", ""}, "odd": {"", ""},
		"time_per_output_token_s": {"s", ""}, "total_tokens": {"tokens", ""}, "tokens_per_s": {"tokens/s", ""},
		"requests_per_s": {"", ""}, "energy_per_tokens": {"", ""}}
	c := compare.Runs(comparetest.Run(t, "reported", e)).Cells[0]
	for _, f := range c.Reported {
		if got := [2]string{f.Unit, f.Beside}; got != want[f.Name] {
			t.Errorf("%s is in %q, want %q", f.Name, got, want[f.Name])
		}
		if f.Beside != "" && !c.Figure(f.Beside).Known() {
			t.Errorf("%s stands beside %s, which is not known", f.Name, f.Beside)
		}
	}
	if len(c.Reported) != len(want) {
		t.Errorf("%d figures", len(c.Reported))
	}
}
