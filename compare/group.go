package compare

import (
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/compare/ratio"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
)

// Group is cells of a run that have the fields in common by which a reader asked for them, taken together.
type Group struct {
	Name  string `json:"name"` // the fields and what they are
	Run   int    `json:"run"`  // index into Runs
	Cells []int  `json:"cells"`
	// what is averaged over: fields of cells, and how many values each has
	Over    []string     `json:"over"`
	Refused string       `json:"refused,omitempty"` // why nothing is averaged
	Figures []GroupValue `json:"figures"`
}

// GroupValue is the geometric mean over a group's cells of a figure's medians.
type GroupValue struct {
	Figure string `json:"figure"`
	Title  string `json:"title"`
	Unit   string `json:"unit"`
	// Mean is nil where no cell has a value above zero.
	Mean     *float64        `json:"geomean"`
	Cells    int             `json:"cells"`              // that have such a value
	Left     int             `json:"left_out,omitempty"` // that have none
	Interval *stats.Interval `json:"interval"`
	Note     string          `json:"interval_note,omitempty"`
}

// group takes cells together by the fields that were asked for; nothing where nobody asked. Those of another class of
// device are never averaged with the rest, unless that was asked for too.
func (r *Result) group(o Options) {
	if o.By == nil {
		return
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Launches.Counted == 0 {
			continue
		}
		var words []string
		for _, name := range o.By {
			words = append(words, name+" "+r.field(c, name))
		}
		if len(words) == 0 {
			words = []string{"all cells"}
		}
		name := strings.Join(words, ", ")
		at := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Name == name && g.Run == c.Run })
		if at < 0 {
			at = len(r.Groups)
			r.Groups = append(r.Groups, Group{Name: name, Run: c.Run, Figures: []GroupValue{}})
		}
		r.Groups[at].Cells = append(r.Groups[at].Cells, i)
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		g.Over = r.varied(g.Cells, o.By)
		classes := map[string]bool{}
		for _, at := range g.Cells {
			classes[deviceClass(&r.Cells[at])] = true
		}
		if len(classes) > 1 && !o.AllowDifferent {
			g.Refused = "its cells computed on different classes of device (" + explain.List(classes) +
				"): group them by device too"
			continue
		}
		for _, name := range compared(false) {
			g.Figures = append(g.Figures, r.groupValue(g.Cells, name))
		}
	}
}

func (r *Result) groupValue(cells []int, name string) GroupValue {
	v := GroupValue{Figure: name}
	var samples [][]float64
	sum, why := 0.0, evidence.TooFewRuns
	if name == figure.Increase && r.mixedBaselines(cells) {
		v.Title, v.Left, v.Note = "memory increase", len(cells),
			"not averaged: of some it is the whole peak, of others what came on top"
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
			// several repetitions of one launch are not as many launches
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
	mean := stats.Round(math.Exp(sum/float64(v.Cells)), 6)
	v.Mean, v.Interval = &mean, stats.MeanOf(samples)
	if v.Interval == nil {
		v.Note = why
	}
	return v
}

// mixedBaselines tells that some cells had no process before the load, and others had.
func (r *Result) mixedBaselines(cells []int) bool {
	none := 0
	for _, i := range cells {
		if r.Cells[i].Figure(figure.Baseline).Absent == memory.NoBaseline {
			none++
		}
	}
	return none > 0 && none < len(cells)
}
