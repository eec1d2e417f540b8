package growth

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"llmparity/compare/evidence"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

const perToken = 24 << 10 // bytes

// tokensAt is how many tokens there were by then.
func tokensAt(ns int64) float64 { return max(0, 1+float64(ns-firstAt)/float64(tokenStep)) }

func grownOf(c *memory.Footprint, attempts ...*record.Attempt) *Growth {
	c.Counted = attempts
	_, g := Within(c, &record.Run{})
	return g
}

func (g *Growth) rate(name string) *Rate {
	for i := range g.Rates {
		if g.Rates[i].Name == name {
			return &g.Rates[i]
		}
	}
	return nil
}

// shaped is a cell whose tokens take perToken bytes of KV cache.
func shaped() *memory.Footprint {
	return &memory.Footprint{Setup: evidence.Setup{
		Spec:   record.Cell{Model: record.Model{Layers: 12, KVHeads: 4, HeadDim: 64}},
		Engine: &record.EngineInfo{Policy: map[string]string{"kv_dtype": "f32"}}}}
}

func TestGrowthIsFoundByItsSlope(t *testing.T) {
	for name, c := range map[string]struct {
		rate, noise float64 // bytes a token, MiB
		launches    int
		verdict     string
	}{
		"theory's":     {perToken, 0.02, 8, "the calculated 24576 is within the interval"},
		"twice":        {2 * perToken, 0.02, 8, "more than the calculated 24576"},
		"a third":      {perToken / 3, 0.02, 8, "less than the calculated 24576"},
		"none":         {0, 0.05, 8, "no significant growth"},
		"shrinking":    {-perToken, 0.02, 8, "shrinks"},
		"too few":      {perToken, 0.02, 5, "too few launches (5)"},
		"all the same": {0, 0, 8, "flat"},
	} {
		r := rand.New(rand.NewPCG(21, 34)) // of each its own: maps have no order
		var attempts []*record.Attempt
		for id := 1; id <= c.launches; id++ {
			own := c.rate * (1 + 0.02*r.NormFloat64())
			attempts = append(attempts, follower{id: id, tokens: 120, every: 40 * time.Millisecond,
				at: func(ns int64) float64 {
					return 300 + own*tokensAt(ns)/record.MiB +
						c.noise*r.NormFloat64()
				}}.attempt())
		}
		g := grownOf(shaped(), attempts...)
		rate := g.rate("rss_sum")
		if g.Theory == nil || g.Theory.Bytes != perToken {
			t.Fatalf("theory %+v", g.Theory)
		}
		if math.Abs(rate.Center()-c.rate) > 0.06*perToken || rate.N != c.launches ||
			!strings.Contains(rate.Verdict, c.verdict) {
			t.Errorf("%s: %g bytes/token of %d launches, %q; want about %g, %q", name, rate.Center(), rate.N,
				rate.Verdict, c.rate, c.verdict)
		}
		if iv := rate.Interval; (iv != nil) != (c.launches >= stats.MinRuns) {
			t.Errorf("%s: interval %+v of %d launches", name, iv, c.launches)
		}
		if len(rate.Lines) != c.launches || rate.Fit == nil ||
			math.Abs(rate.Fit.To.MiB-rate.Center()*(rate.Fit.To.Tokens-rate.Fit.From.Tokens)/record.MiB) > 1e-3 {
			t.Errorf("%s: %d lines, fit %+v", name, len(rate.Lines), rate.Fit)
		}
	}
}

func TestFewReadingsAreNoSlope(t *testing.T) {
	a := follower{id: 1, tokens: 30, every: 400 * time.Millisecond, at: line}.attempt() // 1.1 s of tokens
	r := grownOf(shaped(), a).rate("rss_sum")
	if r.Known() || r.Fit != nil || r.Verdict != "fewer than 5 readings during generation" {
		t.Errorf("%+v", r)
	}
	if g := grownOf(&memory.Footprint{}, a); g != nil {
		t.Errorf("neither theory nor readings: %+v", g)
	}
}

func TestGrowthOfDriftedLaunchIsNotReported(t *testing.T) {
	drift := []record.Clock{{Isolate: "page", ErrorNS: 1e5}, {Isolate: "page", OffsetNS: 9e8, ErrorNS: 1e5}}
	a := follower{id: 1, tokens: 120, every: 40 * time.Millisecond, at: line, clocks: drift}.attempt()
	r := grownOf(shaped(), a).rate("rss_sum")
	if r.Known() || !strings.Contains(r.Verdict, "known to 900.1ms at worst") {
		t.Errorf("%+v", r)
	}
}

// What is filled of the KV cache is arithmetic: a slope of it would be the arithmetic again. What is reserved is told,
// and never changes.
func TestReservedCacheByPhase(t *testing.T) {
	a := follower{id: 1, tokens: 60, every: 40 * time.Millisecond, at: func(int64) float64 { return 300 }}.attempt()
	const warm, load = int64(9.7e9), int64(9e9)
	a.Phases = []record.PhaseSpan{{Name: record.Load, BeginNS: 1e9, EndNS: load},
		{Name: record.Warmup, BeginNS: 9.2e9, EndNS: warm}, a.Phases[1]}
	a.Requests = append([]*record.Request{{ID: 9, Phase: record.Warmup, PromptTokens: 20,
		Tokens: make([]record.TokenRow, 8)}}, a.Requests...)
	a.Sources[3] = record.Source{Role: "server", Method: evidence.EngineLog, PID: 7}
	tell := func(phase record.Phase, at int64, used float64) {
		a.Metrics = append(a.Metrics, record.MetricRow{Source: 3, NS: at + 1000, Name: "kv_used_bytes", Value: used,
			Edge: phase},
			record.MetricRow{Source: 3, NS: at + 1000, Name: "kv_reserved_bytes", Value: 512 * perToken, Edge: phase})
	}
	tell(record.Load, load, 0)
	tell(record.Warmup, warm, (20+8-1)*perToken) // the last token of a text never gets there
	tell(record.Measure, a.Phases[2].EndNS, (20+60-1)*perToken)
	g := grownOf(shaped(), a)
	if r := g.rate(figure.KVUsed); r != nil {
		t.Errorf("filled: %g, %q", r.Center(), r.Verdict)
	}
	if r := g.rate(figure.KVReserved); r.Center() != 0 || r.Origin != record.OriginReported ||
		!strings.Contains(r.Verdict, "flat, because everything is reserved during the load") || r.Of != OfReserved {
		t.Errorf("reserved: %g, %q", r.Center(), r.Verdict)
	}
}
