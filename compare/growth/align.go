package growth

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// OverTokens is a cell's memory over generated tokens: samples aligned with the times of tokens.
type OverTokens struct {
	Axis   string    `json:"axis"` // the unit: tokens, or pieces of text
	Tokens []int     `json:"-"`    // positions: 0 is when the request was sent, 1 the first token
	Lines  []Aligned `json:"lines"`
	Notes  []string  `json:"notes"`           // caveats, and launches that are left out
	Clock  string    `json:"clock,omitempty"` // accuracy of the times of tokens; empty: they are by the host's clock
	How    string    `json:"how"`
}

// Aligned is one quantity over tokens.
type Aligned struct {
	Name   string         `json:"name"`
	Title  string         `json:"title"`
	Unit   string         `json:"unit"`
	Method string         `json:"method"`
	Blind  string         `json:"blind,omitempty"`
	N      int            `json:"n"` // launches with any value
	Median []AlignedPoint `json:"median"`
	// Launches have a value at each position; NaN in a gap. The record has them, so results omit them.
	Launches []AlignedLaunch `json:"-"`
}

// AlignedLaunch is one launch's line.
type AlignedLaunch struct {
	Attempt int
	Values  []float64
}

// AlignedPoint is the median over launches at one position where at least half of them have a value. It has no interval
// with too few launches.
type AlignedPoint struct {
	Token  int      `json:"token"`
	N      int      `json:"n"`
	Median float64  `json:"median"`
	Lo     *float64 `json:"lo,omitempty"` // of the interval, 95% at least
	Hi     *float64 `json:"hi,omitempty"`
}

// placesAtMost is the maximum number of positions on the axis of tokens.
const placesAtMost = 160

const alignedHow = "the memory at a token is interpolated between the samples before and after the token. A " +
	"sample's time is the middle of its read. A launch has no value at a token if these samples are more than 3 times " +
	"as far apart as usual. Lines are medians over launches with their 95% intervals, where at least half of the " +
	"launches have a value"

// overTokens aligns a cell's launches; nil: none of them generated a token.
func overTokens(spec record.Cell, counted []*record.Attempt, followed map[*record.Attempt][]track) *OverTokens {
	out := &OverTokens{Axis: "tokens generated", Lines: []Aligned{}, Notes: []string{}, How: alignedHow}
	if evidence.Uncounted(spec, counted) {
		out.Axis = "pieces of text generated"
	}
	out.Tokens = places(counted)
	if len(out.Tokens) == 0 {
		return nil
	}
	var refused evidence.Groups[string, string] // launches by reason
	refuse := func(a *record.Attempt, why string) {
		evidence.AddNew(&refused, why, fmt.Sprint(a.Repetition))
	}
	var worst clocks
	for a, c := range timed(counted) {
		if c.known && (!worst.known || c.bound() > worst.bound()) {
			worst = c
		}
		if c.known && !c.checked {
			out.Notes = explain.AppendNew(out.Notes,
				fmt.Sprintf("the clock of tokens (%s) was not compared with the host's at the end of every launch; its drift is not known", c.isolate))
		}
		if why := untimed(a); why != "" {
			refuse(a, why)
			continue
		}
		for _, t := range followed[a] {
			if t.sparse() {
				continue
			}
			if why := t.refused(c); why != "" {
				refuse(a, why)
			} else if line, ok := t.along(a, out.Tokens); ok {
				out.add(t, line)
			}
		}
	}
	for why, launches := range refused.All() {
		out.Notes = append(out.Notes, fmt.Sprintf("%s %s: %s", explain.Plural(len(launches), "launch", "launches"),
			explain.Some(launches, 12), why))
	}
	for i := range out.Lines {
		out.Lines[i].summarise(out.Tokens)
	}
	out.Clock = worst.note()
	return out
}

// timed iterates over the attempts by launch, each with the clock of its launch.
func timed(counted []*record.Attempt) iter.Seq2[*record.Attempt, clocks] {
	return func(yield func(*record.Attempt, clocks) bool) {
		for _, l := range evidence.Launches(counted) {
			clock := clocksOf(l)
			for _, a := range l.Attempts {
				if !yield(a, clock) {
					return
				}
			}
		}
	}
}

// untimed says why a launch's tokens have no times; empty: they do.
func untimed(a *record.Attempt) string {
	if n := evidence.InFlight(a); n > 1 {
		return fmt.Sprintf("up to %d requests ran at once: memory is that of all of them", n)
	}
	for _, r := range a.Measured() {
		if len(r.Tokens) == 0 {
			return "a request returned no token"
		}
		if _, reported := r.Span(record.Decode); !reported && len(r.Tokens) > 1 {
			return figure.Untimed(r)
		}
	}
	return ""
}

// refused says why a track cannot be aligned with the times of tokens; empty: it can.
func (t track) refused(c clocks) string {
	if why := c.trouble(t.every); why != "" {
		return t.title + " is not aligned: " + why
	}
	return ""
}

// note describes the accuracy of the times of tokens.
func (c clocks) note() string {
	if !c.known {
		return ""
	}
	return fmt.Sprintf("tokens are timed by the clock of the %s (known to %v at the start of a launch, drift at most %v)",
		c.isolate, span(c.start), span(c.drift))
}

// places are the numbers of tokens at which launches are compared: every number, or as many as charts show.
func places(counted []*record.Attempt) []int {
	most := 0
	for _, r := range evidence.Requests(counted) {
		most = max(most, len(r.Tokens))
	}
	if most == 0 {
		return nil
	}
	n := min(most, placesAtMost)
	out := make([]int, 0, n+1)
	for i := range n + 1 {
		out = append(out, int(math.Round(float64(i)*float64(most)/float64(n))))
	}
	return out
}

// along is a launch's line: the median of its requests at each position; false: no position has a value.
func (t track) along(a *record.Attempt, places []int) (AlignedLaunch, bool) {
	line := AlignedLaunch{Attempt: a.ID, Values: make([]float64, len(places))}
	some := false
	gap := t.gap()
	for i, k := range places {
		var values []float64
		for _, r := range a.Measured() {
			if k > len(r.Tokens) {
				continue
			}
			ns := r.SentNS
			if k > 0 {
				ns = r.Tokens[k-1].NS
			}
			if v := t.at(ns, gap); !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		line.Values[i] = stats.Median(values)
		some = some || len(values) > 0
	}
	return line, some
}

func (o *OverTokens) add(t track, line AlignedLaunch) {
	at := slices.IndexFunc(o.Lines, func(l Aligned) bool { return l.Name == t.name })
	if at < 0 {
		at = len(o.Lines)
		o.Lines = append(o.Lines, Aligned{Name: t.name, Title: t.title, Unit: "MiB", Method: t.method, Blind: t.blind,
			Median: []AlignedPoint{}})
	}
	o.Lines[at].Launches = append(o.Lines[at].Launches, line)
	o.Lines[at].N++
}

// summarise computes the median over launches at each position.
func (l *Aligned) summarise(places []int) {
	for i, k := range places {
		var values []float64
		for _, line := range l.Launches {
			if v := line.Values[i]; !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		if 2*len(values) < l.N || len(values) == 0 {
			continue
		}
		p := AlignedPoint{Token: k, N: len(values), Median: stats.Round(stats.Median(values), 6)}
		if i := stats.MedianInterval(values, stats.Confidence); i != nil {
			p.Lo, p.Hi = new(stats.Round(i.Lo, 6)), new(stats.Round(i.Hi, 6))
		}
		l.Median = append(l.Median, p)
	}
}

// clocks describes the clock of a launch's tokens, that of a page or a worker, in nanoseconds. It is empty for engines
// whose tokens are timed by the host's clock.
type clocks struct {
	isolate string
	known   bool  // it was compared with the host's
	checked bool  // again at the end
	start   int64 // error of the first comparison
	drift   int64 // absolute drift between the two
}

// clocksOf uses the first and the last comparison of the launch: if repetitions share the launch, the last of them has
// it. Of several isolates it returns the least accurate.
func clocksOf(l evidence.Launch) clocks {
	first, last := map[string]*record.Clock{}, map[string]*record.Clock{}
	attempts := l.Attempts
	if len(attempts) == 0 || attempts[0] != l.Opener {
		attempts = append([]*record.Attempt{l.Opener}, attempts...)
	}
	for _, a := range attempts {
		for _, e := range a.Events {
			if c := e.Clock; c != nil {
				if first[c.Isolate] == nil {
					first[c.Isolate] = c
				} else {
					last[c.Isolate] = c
				}
			}
		}
	}
	var worst clocks
	for isolate, begin := range first {
		c := clocks{isolate: isolate, known: true, start: begin.ErrorNS}
		if end := last[isolate]; end != nil {
			c.checked, c.drift = true, max(end.OffsetNS-begin.OffsetNS, begin.OffsetNS-end.OffsetNS)
		}
		if !worst.known || c.bound() > worst.bound() || c.bound() == worst.bound() && c.isolate < worst.isolate {
			worst = c
		}
	}
	return worst
}

// bound is the maximum error of a token's time.
func (c clocks) bound() int64 { return c.drift + c.start }

// trouble says why tokens cannot be aligned with samples at this interval; empty: they can.
func (c clocks) trouble(every int64) string {
	if every <= 0 || c.bound() <= every {
		return ""
	}
	return fmt.Sprintf("the clock of its tokens (%s) is known to %v at worst, more than the %v between two samples",
		c.isolate, span(c.bound()), span(every))
}

func span(ns int64) time.Duration { return time.Duration(ns).Round(10 * time.Microsecond) }
