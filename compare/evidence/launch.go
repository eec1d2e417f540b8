package evidence

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"

	"llmparity/internal/record"
)

// Has reports whether any launch has a source of the method.
func Has(counted []*record.Attempt, method string) bool {
	_, ok := sourceOf(counted, method)
	return ok
}

// Blind is what a method misses.
func Blind(counted []*record.Attempt, method string) string {
	s, _ := sourceOf(counted, method)
	return s.Blind
}

// sourceOf is the first source of a method.
func sourceOf(counted []*record.Attempt, method string) (record.Source, bool) {
	for _, a := range counted {
		for _, id := range slices.Sorted(maps.Keys(a.Sources)) {
			if s := a.Sources[id]; s.Method == method {
				return s, true
			}
		}
	}
	return record.Source{}, false
}

// Mebi converts bytes.
func Mebi(bytes float64) float64 { return bytes / record.MiB }

// Rejoined reports whether repetitions share a launch.
func Rejoined(attempts []*record.Attempt) bool {
	return slices.ContainsFunc(attempts, func(a *record.Attempt) bool { return a.OpenedBy != 0 })
}

// Uncounted reports whether rows of a request are pieces of text of several tokens.
func Uncounted(spec record.Cell, attempts []*record.Attempt) bool {
	return spec.Pieces && slices.ContainsFunc(Requests(attempts), func(r *record.Request) bool {
		return len(r.Tokens) > 0 && r.Generated != len(r.Tokens)
	})
}

// Requests are the measured requests of attempts.
func Requests(attempts []*record.Attempt) (out []*record.Request) {
	for _, a := range attempts {
		out = append(out, a.Measured()...)
	}
	return out
}

// InFlight is the largest number of concurrent requests.
func InFlight(a *record.Attempt) int {
	type edge struct {
		at int64
		by int
	}
	var edges []edge
	for _, r := range a.Measured() {
		edges = append(edges, edge{r.SentNS, 1}, edge{r.ReturnedNS, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now, most := 0, 0
	for _, e := range edges {
		now += e.by
		most = max(most, now)
	}
	return most
}

// Launch is a launch with its counted repetitions: one, unless launches are reused.
type Launch struct {
	ID       int // of the attempt that opened it
	Opener   *record.Attempt
	Attempts []*record.Attempt // that count, in order
}

// Launches groups attempts by launch, in the order in which launches were opened.
func Launches(counted []*record.Attempt) []Launch {
	var by Groups[*record.Attempt, *record.Attempt]
	for _, a := range counted {
		by.Add(a.Launch(), a)
	}
	var out []Launch
	for opener, attempts := range by.All() {
		out = append(out, Launch{opener.ID, opener, attempts})
	}
	return out
}

// At lists the attempts that may have a phase: those up to the warm-up are in the attempt that opened the launch.
func (l Launch) At(p record.Phase) []*record.Attempt {
	switch p {
	case record.Baseline, record.Load, record.Warmup:
		return []*record.Attempt{l.Opener}
	}
	return l.Attempts
}

// Last is the latest reading of a launch at the end of a phase; NaN without one.
func (l Launch) Last(p record.Phase, read func(*record.Attempt) float64) float64 {
	out := math.NaN()
	for _, a := range l.At(p) {
		if v := read(a); !math.IsNaN(v) {
			out = v
		}
	}
	return out
}

// Reach is the time from the beginning of a phase to that of the next, or to the end of the attempt.
func Reach(a *record.Attempt, p record.Phase) (begin, end int64, ok bool) {
	at := slices.IndexFunc(a.Phases, func(s record.PhaseSpan) bool { return s.Name == p })
	if at < 0 {
		return 0, 0, false
	}
	begin, end = a.Phases[at].BeginNS, a.EndNS+1
	if at+1 < len(a.Phases) {
		end = a.Phases[at+1].BeginNS
	}
	return begin, end, true
}

// MaxKnown is the larger of two values; one may be NaN.
func MaxKnown(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// Groups are values grouped by a key, in the order in which keys first appear.
type Groups[K comparable, V any] struct {
	Keys []K
	Of   map[K][]V
}

// Add puts a value into its group.
func (g *Groups[K, V]) Add(key K, v V) {
	if g.Of == nil {
		g.Of = map[K][]V{}
	}
	if _, ok := g.Of[key]; !ok {
		g.Keys = append(g.Keys, key)
	}
	g.Of[key] = append(g.Of[key], v)
}

// AddNew puts a value into its group, unless it is there.
func AddNew[K, V comparable](g *Groups[K, V], key K, v V) {
	if !slices.Contains(g.Of[key], v) {
		g.Add(key, v)
	}
}

// Lines has one line per group.
func (g *Groups[K, V]) Lines(say func(K, []V) string) []string {
	var out []string
	for _, key := range g.Keys {
		out = append(out, say(key, g.Of[key]))
	}
	return out
}

// All are the groups in order.
func (g *Groups[K, V]) All() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, key := range g.Keys {
			if !yield(key, g.Of[key]) {
				return
			}
		}
	}
}
