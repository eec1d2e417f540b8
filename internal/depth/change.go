package depth

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// Changed is a function, with its callers, whose own time differs between two profiles.
type Changed struct {
	Stack string
	By    time.Duration // of its own time in a generation
}

// certainty is how many standard errors a change must have. Of a thousand functions, three pass by chance.
const certainty = 3

// Changes compares own times with those of an earlier profile, the largest change first. Only what changed for certain
// is listed: its time in a generation and its share both grew, or both fell. A faster machine changes times alone, and
// one slow function changes the shares of all others.
func Changes(now, before *Stacks) (out []Changed) {
	a, b := max(1, float64(now.Generations)), max(1, float64(before.Generations))
	stacks := maps.Clone(now.Seen)
	maps.Copy(stacks, before.Seen)
	for stack := range stacks {
		n, m := now.samples(stack), before.samples(stack)
		inTime := inErrors(n, m, a, b)
		inShare := inErrors(n, m, max(1, now.samplesIn()), max(1, before.samplesIn()))
		if math.Min(inTime, inShare) < certainty && math.Max(inTime, inShare) > -certainty {
			continue
		}
		by := float64(now.Seen[stack])*float64(now.Every)/a - float64(before.Seen[stack])*float64(before.Every)/b
		out = append(out, Changed{stack, time.Duration(by)})
	}
	slices.SortFunc(out, func(x, y Changed) int {
		return cmp.Or(-cmp.Compare(x.By.Abs(), y.By.Abs()), cmp.Compare(x.Stack, y.Stack))
	})
	return out
}

// inErrors is the difference of two counts, each divided, in standard errors.
func inErrors(n, m, a, b float64) float64 {
	if n == 0 && m == 0 {
		return 0
	}
	return (n/a - m/b) / math.Sqrt(n/(a*a)+m/(b*b))
}

// samplesIn is the number of samples, where Total may weigh each by its time.
func (s *Stacks) samplesIn() float64 { return cmp.Or(float64(s.Samples), float64(s.Total())) }

// samples is how many samples have a stack.
func (s *Stacks) samples(stack string) float64 {
	return float64(s.Seen[stack]) * s.samplesIn() / math.Max(1, float64(s.Total()))
}
