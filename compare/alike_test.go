package compare_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/compare/memory"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
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

// An engine that hands over what lay in a buffer tells no decode span.
func TestTokensWithoutDecodeHaveNoSpeed(t *testing.T) {
	e := comparetest.Native(3)
	e.Usage = func(u *record.Usage) { u.Spans = u.Spans[:1] }
	c := compare.Runs(comparetest.Run(t, "buffered", e)).Cells[0]
	want := fmt.Sprintf("the times of the %d tokens are not known: the engine held them back, or reports no decode", len(e.IDs))
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

func TestPromptCacheWithoutReportedHits(t *testing.T) {
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
	for name, change := range map[string]func(e *record.Event){
		"version": func(e *record.Event) {
			if e.Engine != nil {
				other := *e.Engine
				other.Version = "b2"
				e.Engine = &other
			}
		},
		"device": func(e *record.Event) {
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

func TestUnknownDeviceClassesHaveNoRatio(t *testing.T) {
	for _, class := range []record.DeviceClass{"unknown", "npu"} {
		a, b := comparetest.Native(6), comparetest.Served(6)
		a.Device.Class, b.Device.Class = class, class
		if c := compare.Runs(comparetest.Run(t, "unknown", a, b)).Comparisons[0]; len(c.Ratios) != 0 ||
			!strings.Contains(c.Refused, "unknown class of device") {
			t.Errorf("%s: %+v", class, c)
		}
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

// An engine that starts a process for each generation loads within its time to the first token, and its load phase has
// waiting of ours in it: the load is what its span says, and neither is compared with another engine's.
func TestOneProcessPerGeneration(t *testing.T) {
	once := comparetest.Served(6)
	once.Cell.PerGeneration = true
	once.Info.Policy = map[string]string{"process": "one a generation"}
	run := comparetest.Run(t, "once", comparetest.Native(6), once)
	for _, a := range run.Attempts {
		if p, ok := a.Phase(record.Load); ok && a.Cell == run.Cells[1].ID {
			a.Stages = []record.NamedSpan{{Name: "model", BeginNS: p.BeginNS, EndNS: p.BeginNS + 5e6}}
		}
	}
	r := compare.Runs(run)
	if f := r.Cells[1].Figure(figure.LoadTime); f.Center() != 5 ||
		!strings.Contains(f.How, "every request loads ") {
		t.Errorf("load: %+v", f)
	}
	c := r.Comparisons[0]
	if len(c.Ratios) == 0 || slices.ContainsFunc(
		c.Ratios, func(r ratio.Ratio) bool { return r.Figure == figure.TTFT || r.Figure == figure.LoadTime }) {
		t.Errorf("ratios: %+v", c.Ratios)
	}
	check.Has(t, strings.Join(c.Caveats, "\n"), "served loads the model for each request")
}

// Another server on the same file halves what is counted of it: no ratio is drawn from what is left.
func TestMemorySharedWithOtherPrograms(t *testing.T) {
	of := func(processes ...comparetest.Process) *compare.Result {
		a, b := comparetest.Native(6), comparetest.Native(6)
		a.Processes, b.Cell.ID, b.Cell.Engine = processes, 3, "other"
		return compare.Runs(comparetest.Run(t, "shared", a, b))
	}
	memory := func(r *compare.Result) bool {
		return slices.ContainsFunc(r.Comparisons[0].Ratios, func(r ratio.Ratio) bool {
			return r.Figure == figure.PeakPSS || r.Figure == figure.Increase
		})
	}
	r := of(comparetest.Process{Role: "server", Before: 300, Loaded: 420, Shared: 250})
	const shares = "llamacpp: other programs share 250"
	if w := warnedOf(r, "memory-shared"); len(w) != 1 || !strings.HasPrefix(w[0], shares) ||
		!strings.Contains(w[0], "PSS splits it between all programs") {
		t.Errorf("warnings %q", w)
	}
	if c := r.Comparisons[0]; memory(r) || len(c.Ratios) == 0 ||
		!strings.Contains(strings.Join(c.Caveats, "\n"), "memory is not compared: "+shares) {
		t.Errorf("%+v", c)
	}
	a, b := comparetest.Browser(6), comparetest.Native(6)
	alone := answer.Of(compare.Runs(comparetest.Run(t, "alone", a, b)))
	check.Has(t, alone.Memory.Headline, "more")
	const text = "/usr/bin/chromium runs outside the launch, too: PSS splits it"
	a.Warnings = []record.Warning{{Code: record.ProgramShared, Text: text}}
	beside := answer.Of(compare.Runs(comparetest.Run(t, "beside", a, b)))
	if beside.Memory.Headline != "webllm uses at least 764 MiB more than llamacpp" || !strings.Contains(beside.Memory.Text, text) ||
		!strings.Contains(beside.Quote.Text, "ther programs shared memory") ||
		strings.Contains(beside.Sure.Headline, "memory") {
		t.Errorf("a browser beside another: %+v, quote %+v", beside.Memory, beside.Quote)
	}
	// Of one process, PSS and RSS tell how much is shared: little is said, and memory is compared.
	one, other := comparetest.Native(6), comparetest.Native(6)
	one.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 22, Shared: 7}}
	one.Warnings, other.Cell.ID, other.Cell.Engine = a.Warnings, 3, "other"
	little := compare.Runs(comparetest.Run(t, "little", one, other))
	const left = text + "; up to 15% of the peak is left out"
	if w := warnedOf(little, "memory-shared"); len(w) != 1 || !strings.HasSuffix(w[0], left) || !memory(little) ||
		!strings.Contains(answer.Of(little).Quote.Text, "ther programs shared memory") {
		t.Errorf("a server beside another: %q, memory compared: %v, quote %+v", w, memory(little), answer.Of(little).Quote)
	}
	check.Has(t, answer.Of(little).Memory.Headline, "but other programs share up to 15% of what llamacpp uses")
	for name, processes := range map[string][]comparetest.Process{
		"libraries":                      {{Role: "server", Before: 8, Loaded: 22, Shared: 7}},
		"libraries beside a large model": {{Role: "server", Before: 60, Loaded: 420, Shared: 40}},
		"several of its own share between": {{Role: "browser", Before: 300, Loaded: 420, Shared: 250},
			{Role: "renderer", Before: 300, Loaded: 420, Shared: 250}},
	} {
		if r := of(processes...); len(warnedOf(r, "memory-shared")) != 0 || !memory(r) {
			t.Errorf("%s: %q, memory compared: %v", name, warnedOf(r, "memory-shared"), memory(r))
		}
	}
}
