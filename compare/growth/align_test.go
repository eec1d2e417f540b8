package growth

import (
	"math"
	"strings"
	"testing"
	"time"

	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// follower makes launches whose memory is known at every time.
type follower struct {
	id      int
	tokens  int
	every   time.Duration          // between samples
	took    time.Duration          // of a read
	at      func(ns int64) float64 // MiB
	without func(ns int64) bool    // samples that are missing
	clocks  []record.Clock
}

const (
	sentAt    = int64(10e9)
	firstAt   = sentAt + int64(200*time.Millisecond)
	tokenStep = int64(37 * time.Millisecond)
)

func (f follower) attempt() *record.Attempt {
	q := &record.Request{ID: 1, Phase: record.Measure, SentNS: sentAt, PromptTokens: 20, Finish: "length"}
	for i := range f.tokens {
		q.Tokens = append(q.Tokens, record.TokenRow{Index: i, ID: i, NS: firstAt + int64(i)*tokenStep})
	}
	last := firstAt + int64(f.tokens-1)*tokenStep
	q.ReturnedNS = last + 1000
	q.Spans = []record.NamedSpan{{Name: record.Prefill, BeginNS: sentAt, EndNS: firstAt},
		{Name: record.Decode, BeginNS: firstAt, EndNS: last}}
	end := last + int64(5*time.Millisecond)
	a := &record.Attempt{ID: f.id, Beginning: record.Beginning{Cell: 1, Repetition: f.id}, Status: record.OK,
		EndNS: end + int64(2*time.Second),
		Phases: []record.PhaseSpan{{Name: record.Load, BeginNS: 1e9, EndNS: 9e9},
			{Name: record.Measure, BeginNS: sentAt - 1e6, EndNS: end}},
		Requests: []*record.Request{q},
		Sources: map[int]record.Source{1: {Role: "server", Method: record.MethodStatm, PID: 7, Every: f.every},
			2: {Role: "server", Method: record.MethodSmapsRollup, PID: 7, Every: 4 * f.every}}}
	for _, c := range f.clocks {
		a.Events = append(a.Events, record.Event{Clock: &c})
	}
	for _, method := range []string{record.MethodStatm, record.MethodSmapsRollup} {
		step := int64(f.every)
		if method == record.MethodSmapsRollup {
			step *= 4
		}
		for ns := sentAt - 10*int64(f.every); ns < end+20*int64(f.every); ns += step {
			if f.without != nil && f.without(ns) {
				continue
			}
			// Stamped when the read has ended; what was read is that of its middle.
			a.Totals = append(a.Totals, record.TotalRow{Method: method, Processes: 1, NS: ns + int64(f.took)/2,
				ReadNS: int64(f.took), RSS: f.at(ns), PSS: f.at(ns)})
		}
	}
	return a
}

func line(ns int64) float64 { return 100 + 8*float64(ns-sentAt)/1e9 }

func alignedOf(t *testing.T, attempts ...*record.Attempt) *OverTokens {
	t.Helper()
	o, _ := Within(&memory.Footprint{Counted: attempts}, &record.Run{})
	if o == nil {
		t.Fatal("nothing was aligned")
	}
	return o
}

func (o *OverTokens) line(name string) *Aligned {
	for i := range o.Lines {
		if o.Lines[i].Name == name {
			return &o.Lines[i]
		}
	}
	return nil
}

func TestChartsStopAtGaps(t *testing.T) {
	const every = 100 * time.Millisecond
	gapFrom, gapTo := firstAt+10*tokenStep, firstAt+10*tokenStep+int64(350*time.Millisecond)
	lastSample := firstAt + 40*tokenStep
	a := follower{id: 1, tokens: 50, every: every, at: line,
		without: func(ns int64) bool {
			return ns > gapFrom && ns < gapTo || ns < sentAt+50e6 ||
				ns > lastSample
		}}.attempt()
	l := alignedOf(t, a).line("rss_sum")
	var times []int64
	for _, row := range a.Totals {
		if row.Method == record.MethodStatm {
			times = append(times, row.NS)
		}
	}
	none := 0
	for i, v := range l.Launches[0].Values {
		ns := placeOf(i)
		before, after := int64(-1), int64(-1)
		for _, at := range times {
			if at <= ns {
				before = at
			}
			if at >= ns && after < 0 {
				after = at
			}
		}
		known := before >= 0 && after >= 0 && after-before <= 3*int64(every)
		if known != !math.IsNaN(v) {
			t.Errorf("token %d: %g, with samples at %d and %d", i, v, before, after)
		}
		if !known {
			none++
		}
	}
	if none < 12 || none > 40 {
		t.Errorf("%d places without a value: the test has no gap, or nothing else", none)
	}
}

func TestDriftedTokensAreNotAligned(t *testing.T) {
	page := func(start, end, off time.Duration) []record.Clock {
		return []record.Clock{{Isolate: "page", When: "start", OffsetNS: 5e6, ErrorNS: int64(start)},
			{Isolate: "page", When: "end", OffsetNS: 5e6 + int64(off), ErrorNS: int64(end)}}
	}
	const ok = 200 * time.Microsecond
	for name, c := range map[string]struct {
		clocks   []record.Clock
		rss, pss bool
		says     string
	}{
		"together": {page(ok, ok, 3*time.Millisecond), true, true, ""},
		"apart by more than a sample": {page(ok, ok, -150*time.Millisecond), false, true,
			"known to 150.2ms at worst, more than the 100ms between two samples"},
		"apart by more than any":    {page(ok, ok, 3*time.Second), false, false, "known to 3.0002s at worst"},
		"hardly known":              {page(250*time.Millisecond, ok, 0), false, true, "known to 250ms at worst"},
		"never compared at the end": {page(ok, ok, 0)[:1], true, true, "was not compared with the host's at the end"},
		"a worker drifts, the page not": {append(
			page(ok, ok, 0), record.Clock{Isolate: "worker", When: "start", ErrorNS: 1e5},
			record.Clock{Isolate: "worker", When: "end", OffsetNS: 3e8, ErrorNS: 1e5}), false, true, "(worker)"},
	} {
		o := alignedOf(t, follower{id: 1, tokens: 50, every: 100 * time.Millisecond, at: line,
			clocks: c.clocks}.attempt())
		if (o.line("rss_sum") != nil) != c.rss || (o.line(figure.TotalPSS) != nil) != c.pss {
			t.Errorf("%s: RSS aligned %v, PSS aligned %v", name, o.line("rss_sum") != nil,
				o.line(figure.TotalPSS) != nil)
		}
		if notes := strings.Join(o.Notes, "\n"); !strings.Contains(notes, c.says) || c.says == "" && notes != "" {
			t.Errorf("%s: notes %q, want %q", name, notes, c.says)
		}
	}
}

func placeOf(token int) int64 {
	if token == 0 {
		return sentAt
	}
	return firstAt + int64(token-1)*tokenStep
}

func TestFigureNeedsHalfOfLaunches(t *testing.T) {
	var attempts []*record.Attempt
	for id := 1; id <= 7; id++ {
		n := 40
		if id > 3 {
			n = 20 // these stopped early
		}
		above := float64(id)
		attempts = append(attempts, follower{id: id, tokens: n, every: 100 * time.Millisecond,
			at: func(ns int64) float64 { return line(ns) + above }}.attempt())
	}
	l := alignedOf(t, attempts...).line("rss_sum")
	if l.N != 7 || len(l.Launches) != 7 {
		t.Fatalf("%d launches", l.N)
	}
	for _, p := range l.Median {
		switch {
		case p.Token > 20:
			t.Errorf("token %d has a median of %d of 7", p.Token, p.N)
		case p.N != 7 || math.Abs(p.Median-line(placeOf(p.Token))-4) > 1e-6:
			t.Errorf("token %d: %+v", p.Token, p)
		case p.Lo == nil || *p.Lo > p.Median-2 || *p.Hi < p.Median+2:
			t.Errorf("token %d: the interval of 7 launches goes from the second, or further: %+v", p.Token, p)
		}
	}
}

func TestTokensWithoutDecodeAreNotAligned(t *testing.T) {
	a := follower{id: 2, tokens: 50, every: 100 * time.Millisecond, at: line}.attempt()
	a.Requests[0].Spans = a.Requests[0].Spans[:1] // as where an engine answers with the whole text
	o := alignedOf(t, a)
	if len(o.Lines) != 0 || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "the times of the 50 tokens are not known") {
		t.Errorf("%d lines, notes %q", len(o.Lines), o.Notes)
	}
}
