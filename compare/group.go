package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
	"llmparity/internal/stats"
)

// Group is the cells of a run with the same values of the requested fields.
type Group struct {
	Name  string `json:"name"` // the fields and their values
	Run   int    `json:"run"`  // index into Runs
	Cells []int  `json:"cells"`
	// fields that are averaged over, with their numbers of values
	Over    []string     `json:"over"`
	Refused string       `json:"refused,omitempty"` // why nothing is averaged
	Figures []GroupValue `json:"figures"`
}

// GroupValue is the geometric mean over a group's cells of a figure's medians.
type GroupValue struct {
	Figure string `json:"figure"`
	Title  string `json:"title"`
	Unit   string `json:"unit"`
	// Mean is nil if no cell has a value above zero.
	Mean     *float64        `json:"geomean"`
	Cells    int             `json:"cells"`              // with such a value
	Left     int             `json:"left_out,omitempty"` // without one
	Interval *stats.Interval `json:"interval"`
	Note     string          `json:"interval_note,omitempty"`
}

// group groups cells by the requested fields; without any it does nothing. Cells on different classes of device are
// averaged only with --allow-different.
func (r *Result) group() {
	by := r.Statistics.By
	if by == nil {
		return
	}
	type key struct {
		name string
		run  int
	}
	var all evidence.Groups[key, int]
	for i, c := range r.Cells {
		var words []string
		for _, name := range by {
			words = append(words, name+" "+r.field(c, name))
		}
		if c.Launches.Counted > 0 {
			all.Add(key{cmp.Or(strings.Join(words, ", "), "all cells"), c.Run}, i)
		}
	}
	for k, cells := range all.All() {
		g := Group{Name: k.name, Run: k.run, Cells: cells, Over: r.varied(cells, by), Figures: []GroupValue{}}
		classes := map[string]bool{}
		for _, at := range cells {
			classes[deviceClass(r.Cells[at])] = true
		}
		if len(classes) > 1 && !r.Statistics.AllowDifferent {
			g.Refused = "the cells of this group ran on different classes of device (" + explain.List(classes) +
				"); group by device too"
		} else {
			for _, name := range compared(false) {
				g.Figures = append(g.Figures, r.groupValue(cells, name))
			}
		}
		r.Groups = append(r.Groups, g)
	}
}

func (r *Result) groupValue(cells []int, name string) GroupValue {
	v := GroupValue{Figure: name}
	var samples [][]float64
	sum, why := 0.0, evidence.TooFewRuns
	without := func(i int) bool { return r.Cells[i].Figure(figure.Baseline).Lacks == evidence.NoProcess }
	with := func(i int) bool { return !without(i) }
	if name == figure.Increase && slices.ContainsFunc(cells, without) && slices.ContainsFunc(cells, with) {
		v.Title, v.Left, v.Note = "memory increase", len(cells),
			"not averaged: it is the whole peak for some cells, and the growth since the baseline for others"
		return v
	}
	for _, i := range cells {
		f := r.Cells[i].Figure(name)
		if f.Title != "" {
			v.Title, v.Unit = f.Title, f.Unit
		}
		if !f.Known() || f.Center() <= 0 {
			v.Left++
			continue
		}
		values := f.Numbers()
		if n := r.Cells[i].Launches.Opened; n > 0 && len(values) > n {
			// repetitions of one launch are not independent
			values, why = nil, "repetitions share launches"
		} else if len(values) >= stats.MinRuns && slices.Min(values) <= 0 && why == evidence.TooFewRuns {
			why = ratio.NotPositive
		}
		samples = append(samples, values)
		sum += math.Log(f.Center())
	}
	if v.Cells = len(samples); v.Cells == 0 {
		return v
	}
	v.Mean, v.Interval = new(stats.Round(math.Exp(sum/float64(v.Cells)), 6)), stats.MeanOf(samples)
	if v.Interval == nil {
		v.Note = why
	}
	return v
}
