package change

import (
	"cmp"
	"math"
	"slices"

	"llmparity/internal/stats"
)

// A control cell has noise of its own, and a ratio has that of both cells. The cells beside a cell have the machine's
// state, too, and the middle of many of them has hardly any noise. But it is no fixed point: where most of them change,
// the others seem to change the other way. So a change beside them is one only if the ratio to the control shows it.

// fewest is how many cells a run needs for a middle of them.
const fewest = 5

// besides is the share of the budget that changes beside other cells have. The rest finds those of most cells at once,
// which several of them may show.
const besides = 0.7

// agreed is up to which probability the ratio to the control cell agrees with a change.
const agreed = 1e-3

// Beside subtracts from the logarithms of cells, by cell and run, how far those of the same run are off their usual
// values together. NaN is a cell without a value; a run with too few cells has none.
func Beside(cells [][]float64) [][]float64 {
	if len(cells) < fewest {
		return nil
	}
	usual := make([]float64, len(cells))
	known := make([]float64, 0, len(cells[0]))
	for i, runs := range cells {
		known = known[:0]
		for _, v := range runs {
			if !math.IsNaN(v) {
				known = append(known, v)
			}
		}
		if len(known) > 0 {
			usual[i] = stats.Median(known)
		}
	}
	out := make([][]float64, len(cells))
	for i := range cells {
		out[i] = make([]float64, len(cells[i]))
	}
	for run := range cells[0] {
		known = known[:0]
		for i := range cells {
			if v := cells[i][run]; !math.IsNaN(v) {
				known = append(known, v-usual[i])
			}
		}
		together := math.NaN()
		if len(known) >= fewest {
			slices.Sort(known)
			together = Middle(known)
		}
		for i := range cells {
			out[i][run] = cells[i][run] - together
		}
	}
	return out
}

// both finds changes of the ratio to the control cell, and changes beside other cells.
func both(s Series) []Change {
	ratio, own := s, s
	ratio.Beside, own.Beside, own.Values = nil, nil, nil
	ratio.Budget, own.Budget = make([]float64, len(s.Budget)), nil
	var at []int // of own in s
	for i, v := range s.Beside {
		ratio.Budget[i] = (1 - besides) * s.Budget[i]
		if !math.IsNaN(v) {
			at = append(at, i)
			own.Values, own.Budget = append(own.Values, v), append(own.Budget, besides*s.Budget[i])
		}
	}
	out := Find(ratio)
	for _, c := range Find(own) {
		if c.Suspected {
			continue
		}
		c.At, c.Seen, c.From, c.Beside = at[c.At], at[c.Seen], at[c.From], true
		if c.To < len(at) {
			c.To = at[c.To]
		} else {
			c.To = len(s.Values)
		}
		if !ratio.agrees(c) {
			continue
		}
		same := slices.IndexFunc(out, func(o Change) bool {
			return (o.Percent > 0) == (c.Percent > 0) && (o.Suspected || o.At < c.Seen+After && c.At < o.Seen+After)
		})
		switch {
		case same < 0:
			out = append(out, c)
		case out[same].Suspected || c.Chance < out[same].Chance:
			out[same] = c // the clearer one has the better place
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	return out
}

// agrees reports whether a series shows a change that another one has.
func (s Series) agrees(c Change) bool {
	before, behind := s.Values[c.From:c.At], s.Values[c.At:c.To]
	up := stats.Median(behind) > stats.Median(before)
	return up == (c.Percent > 0) && Tail(len(before), len(behind), pairsOutOfOrder(before, behind)) <= agreed
}
