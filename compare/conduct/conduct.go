// Package conduct finds in a record how a run's launches were made.
package conduct

import (
	"cmp"
	"slices"
	"time"

	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

// Conduct is how a run's launches were made, as its record shows it, for a description of the method. Results as JSON
// lack it: all of it stands in the record.
type Conduct struct {
	Order        Order
	Warmups      Range    // warm-up launches of a cell
	WarmupTokens Range    // tokens generated in a counted launch before it is measured
	Readers      []Reader // in order of their methods
	// Clock is the largest error of comparing another clock, such as a page's, with the host's; 0: there was none.
	Clock time.Duration
}

// Order is the order of launches that the record shows.
type Order string

// The orders. One cell has none.
const (
	Grouped   Order = "grouped"   // all launches of a cell, one after the other
	Alternate Order = "alternate" // a launch of each cell, then again, in the same order
	Shuffled  Order = "shuffled"  // the same, in an order that changes
	Mixed     Order = "mixed"     // cells alternate in groups, one group after the other
)

// Range is the smallest and largest of several numbers.
type Range struct{ Low, High int }

// Reader is a method that read processes or devices at an interval.
type Reader struct {
	Method string
	Every  time.Duration // its shortest interval
}

// Cell is a cell that was launched, as this package takes it.
type Cell struct {
	All, Counted []*record.Attempt
	Warmups      int // warm-up launches
}

// Of returns how the launches of cells were made.
func Of(cells []Cell) Conduct {
	var out Conduct
	var attempts []*record.Attempt
	var warmups, tokens []int
	every := map[string]time.Duration{}
	for _, c := range cells {
		attempts = append(attempts, c.All...)
		warmups = append(warmups, c.Warmups)
		for _, a := range c.Counted {
			tokens = append(tokens, warmupTokens(a.Launch()))
			for _, s := range a.Launch().Sources {
				if s.Every > 0 && !s.Waits {
					every[s.Method] = min(cmp.Or(every[s.Method], s.Every), s.Every)
				}
			}
			for _, e := range a.Launch().Events {
				if e.Clock != nil {
					out.Clock = max(out.Clock, time.Duration(e.Clock.ErrorNS))
				}
			}
		}
	}
	out.Warmups, out.WarmupTokens, out.Order = rangeOf(warmups), rangeOf(tokens), orderOf(attempts)
	for method, d := range every {
		out.Readers = append(out.Readers, Reader{method, d})
	}
	slices.SortFunc(out.Readers, func(a, b Reader) int { return cmp.Compare(a.Method, b.Method) })
	return out
}

// warmupTokens counts the tokens that a launch generated before it was measured.
func warmupTokens(a *record.Attempt) (n int) {
	for _, q := range a.Requests {
		if q.Phase == record.Warmup {
			n += q.Tokened()
		}
	}
	return n
}

func rangeOf(all []int) Range {
	if len(all) == 0 {
		return Range{}
	}
	return Range{slices.Min(all), slices.Max(all)}
}

// orderOf finds the order of launches of several cells; empty for one cell. Repetitions may follow each other where
// another cell has none left, because it failed or was stopped.
func orderOf(attempts []*record.Attempt) Order {
	slices.SortFunc(attempts, func(a, b *record.Attempt) int { return cmp.Compare(a.BeginNS, b.BeginNS) })
	var rounds evidence.Groups[int, int] // cells in the order of a round
	var cells []int                      // without repetitions that follow each other
	seen := map[int]bool{}
	for _, a := range attempts {
		if a.Warmup || a.Status == record.Refused {
			continue
		}
		rounds.Add(a.Repetition, a.Cell)
		if len(cells) == 0 || cells[len(cells)-1] != a.Cell {
			cells = append(cells, a.Cell)
		}
		seen[a.Cell] = true
	}
	full := slices.DeleteFunc(slices.Clone(rounds.Keys), func(n int) bool { return len(rounds.Of[n]) != len(seen) })
	switch {
	case len(seen) < 2:
		return ""
	case len(cells) == len(seen):
		return Grouped
	case !slices.IsSorted(repetitions(attempts)):
		return Mixed
	case slices.ContainsFunc(full, func(n int) bool { return !slices.Equal(rounds.Of[n], rounds.Of[full[0]]) }):
		return Shuffled
	}
	return Alternate
}

// repetitions are the numbers of the counted repetitions, in order of time.
func repetitions(attempts []*record.Attempt) (out []int) {
	for _, a := range attempts {
		if !a.Warmup && a.Status != record.Refused {
			out = append(out, a.Repetition)
		}
	}
	return out
}
