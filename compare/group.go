package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/compare/ship"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Rules say how runs are compared.
type Rules struct {
	// MinEffect is the share below which a significant difference does not matter: 0.01 is 1%.
	MinEffect float64
	// Perplexity is by how much it may rise, as a share, in a form of a model that keeps the quality.
	Perplexity float64
	// AllowDifferent gives marked ratios of cells that are not alike: other devices, isolation, unverified weights.
	AllowDifferent bool
	// By names the fields whose values averaged cells share; nil: the engine, without groups.
	By []string
	// Reference has values of the reference cell, by axis; nil: those of the runs' plans. An axis without a value has
	// its first one.
	Reference map[string]string
	// Titles has engines' names for people, by their names in records, which are the default.
	Titles map[string]string
	// Noise is the baseline run once more, for the machine's noise; nil: it was measured once.
	Noise *record.Run
}

// Defaults are the options of Runs.
func Defaults() Rules { return Rules{MinEffect: 0.01, Perplexity: ship.Tolerance} }

// Statistics are the rules of a Result.
type Statistics struct {
	Alpha          float64  `json:"alpha"`      // greatest share of families of equal cells that are called different
	Confidence     float64  `json:"confidence"` // of intervals
	MinEffect      float64  `json:"min_effect"` // a share
	Perplexity     float64  `json:"-"`          // a share; tables of forms have it
	AllowDifferent bool     `json:"allow_different,omitempty"`
	By             []string `json:"by,omitempty"` // as in the options
}

// Check validates options for some runs.
func (o Rules) Check(runs ...*record.Run) error {
	if !(o.MinEffect >= 0 && o.MinEffect < 1) {
		return fault.New(fault.Usage, "use a percentage from 0% to 100%, such as 1%",
			"minimum effect %g%%: out of range", 100*o.MinEffect)
	}
	if !(o.Perplexity >= 0) || math.IsInf(o.Perplexity, 0) {
		return fault.New(fault.Usage, "use a percentage, such as 1%", "perplexity tolerance %g%%: out of range",
			100*o.Perplexity)
	}
	var specs []*record.Cell
	for _, run := range runs {
		for i := range run.Cells {
			specs = append(specs, &run.Cells[i])
		}
	}
	if err := checkReference(o.Reference, specs); err != nil {
		return err
	}
	known := fieldsOf(specs...)
	for _, name := range o.By {
		if !slices.Contains(known, name) && !slices.Contains(known, axis.Named(name).ByName()) {
			return fault.New(fault.Usage, "use "+strings.Join(known, ", "), "unknown field %q", name)
		}
	}
	return nil
}

// reported are fields whose values are measured or reported if none was requested, or because that says more.
var reported = map[string]func(*Cell) string{
	axis.Input: func(c *Cell) string { // as requested, else as the engine counts tokens
		if f := c.Figure(figure.Prompt); c.Spec.InputTokens <= 0 && f.Known() {
			return f.Count()
		}
		return c.Requested(axis.Input)
	},
	axis.Prompt: func(c *Cell) string { return strconv.Quote(c.Spec.Prompt) },
	axis.DType:  func(c *Cell) string { return cmp.Or(c.DTypes(), c.Spec.Model.DType) },
	axis.KVDType: func(c *Cell) string {
		return cmp.Or(c.Spec.KVDType, c.Policy("kv_dtype"))
	},
}

// Fields lists the fields that cells can be grouped by, without engines' own.
func Fields() []string { return fieldsOf() }

// fieldsOf lists the fields that some cells can be grouped by.
func fieldsOf(cells ...*record.Cell) []string {
	var out []string
	for _, x := range axis.Of(cells...) {
		out = append(out, x.ByName())
	}
	return append(out, axis.Device, axis.Run)
}

// field is a cell's value of a field.
func (r *Result) field(c *Cell, name string) string {
	switch name {
	case axis.Device:
		return deviceClass(c)
	case axis.Run:
		return r.RunName(c.Run)
	}
	x := axis.Named(name)
	of := reported[x.Name]
	switch {
	case x.Own: // of one engine
		return cmp.Or(x.Value(&c.Spec), "none")
	case of != nil:
		return cmp.Or(of(c), "unknown")
	}
	return cmp.Or(x.Value(&c.Spec), "unknown")
}

func deviceClass(c *Cell) string {
	if c.Device == nil {
		return "unknown"
	}
	return string(c.Device.Class)
}

// RunName names a run: by what distinguishes it, or else by its name if that is unique, else by the end of its folder,
// else by its number.
func (r *Result) RunName(run int) string {
	if side := r.Runs[run].Side; side != "" {
		return side
	}
	var folders []string // of other runs with the name
	for i, other := range r.Runs {
		if i != run && other.Name == r.Runs[run].Name {
			folders = append(folders, other.Dir)
		}
	}
	if len(folders) == 0 {
		return r.Runs[run].Name
	}
	parts := strings.Split(r.Runs[run].Dir, "/")
	for n := len(parts) - 1; n >= 0; n-- {
		end := strings.Join(parts[n:], "/")
		if end != "" && !slices.ContainsFunc(
			folders, func(dir string) bool { return dir == end || strings.HasSuffix(dir, "/"+end) }) {
			return end
		}
	}
	return fmt.Sprintf("%s #%d", r.Runs[run].Name, run+1)
}

// varied lists the fields in which averaged cells differ, with their numbers of values.
func (r *Result) varied(cells []int, but []string) []string {
	out := []string{}
	for _, name := range fieldsOf(specs(r.Cells)...) {
		if slices.Contains(but, name) {
			continue
		}
		values := map[string]bool{}
		for _, i := range cells {
			values[r.field(r.Cells[i], name)] = true
		}
		if len(values) > 1 {
			out = append(out, fmt.Sprintf("%s (%d)", name, len(values)))
		}
	}
	return out
}

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
