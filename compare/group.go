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
	"llmparity/compare/memory"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Options say how runs are compared.
type Options struct {
	// MinEffect is the share below which a significant difference does not matter: 0.01 is 1%.
	MinEffect float64
	// AllowDifferent gives marked ratios of cells that are not alike: other devices, isolation, unverified weights.
	AllowDifferent bool
	// By names the fields that cells share to be averaged; nil: the engine, without groups.
	By []string
	// Titles has engines' names for people by those in records; an engine without one keeps the name that records have.
	Titles map[string]string
}

// Defaults are the options of Runs.
func Defaults() Options { return Options{MinEffect: 0.01} }

// Statistics are the rules of a Result.
type Statistics struct {
	Alpha          float64  `json:"alpha"`      // the share of families of equal cells that are called different, at most
	Confidence     float64  `json:"confidence"` // of intervals
	MinEffect      float64  `json:"min_effect"` // a share
	AllowDifferent bool     `json:"allow_different,omitempty"`
	By             []string `json:"by,omitempty"` // as asked for
}

// Check validates options.
func (o Options) Check() error {
	if !(o.MinEffect >= 0 && o.MinEffect < 1) {
		return fault.New(fault.Usage, "use a percentage from 0% to 100%, such as 1%",
			"minimum effect %g%%: out of range", 100*o.MinEffect)
	}
	for _, name := range o.By {
		if !slices.Contains(Fields(), name) {
			return fault.New(fault.Usage, "use "+strings.Join(Fields(), ", "), "unknown field %q", name)
		}
	}
	return nil
}

// fields are what cells can be grouped by.
var fields = []struct {
	name string
	of   func(r *Result, c *Cell) string
}{
	{"engine", func(_ *Result, c *Cell) string { return c.Spec.Engine }},
	{"model", func(_ *Result, c *Cell) string { return c.Spec.Model.Name }},
	{"input_len", func(_ *Result, c *Cell) string { // as requested, else as the engine counts tokens
		if f := c.Figure(figure.Prompt); c.Spec.InputTokens <= 0 && f.Known() {
			return f.Count()
		}
		if c.Spec.InputTokens <= 0 {
			return "unknown"
		}
		return strconv.Itoa(c.Spec.InputTokens)
	}},
	{"output_len", func(_ *Result, c *Cell) string { return strconv.Itoa(c.Spec.MaxTokens) }},
	{"prompt", func(_ *Result, c *Cell) string { return strconv.Quote(c.Spec.Prompt) }},
	{"context", func(_ *Result, c *Cell) string { return strconv.Itoa(c.Spec.Model.Context) }},
	{"dtype", func(_ *Result, c *Cell) string { return cmp.Or(c.DTypes(), c.Spec.Model.DType, "unknown") }},
	{"kv_cache_dtype", func(_ *Result, c *Cell) string {
		return cmp.Or(c.Spec.KVDType, c.Policy("kv_dtype"), "unknown")
	}},
	{"weights", func(_ *Result, c *Cell) string { return cmp.Or(c.Spec.Weights, "as-is") }},
	{"concurrency", func(_ *Result, c *Cell) string { return strconv.Itoa(c.AtOnce(record.ClosedLoop)) }},
	{"batch_size", func(_ *Result, c *Cell) string { return strconv.Itoa(c.AtOnce(record.Batch)) }},
	{"traffic", func(_ *Result, c *Cell) string { return c.Traffic() }},
	{"start", func(_ *Result, c *Cell) string { return cmp.Or(c.Spec.Start, "any") }},
	{"temperature", func(_ *Result, c *Cell) string { return strconv.FormatFloat(c.Spec.Temperature, 'g', -1, 64) }},
	{"isolation", func(_ *Result, c *Cell) string { return c.Isolation() }},
	{"device", func(_ *Result, c *Cell) string { return deviceClass(c) }},
	{"run", func(r *Result, c *Cell) string { return r.RunName(c.Run) }},
}

// Fields lists the fields that cells can be grouped by.
func Fields() []string {
	var out []string
	for _, f := range fields {
		out = append(out, f.name)
	}
	return out
}

// field is a cell's value of a field.
func (r *Result) field(c *Cell, name string) string {
	for _, f := range fields {
		if f.name == name {
			return f.of(r, c)
		}
	}
	return ""
}

func deviceClass(c *Cell) string {
	if c.Device == nil {
		return "unknown"
	}
	return string(c.Device.Class)
}

// RunName names a run: by its name if that is unique, else by the end of its folder, else by its number.
func (r *Result) RunName(run int) string {
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

// varied lists the fields in which averaged cells differ, with the number of values.
func (r *Result) varied(cells []int, but []string) []string {
	out := []string{}
	for _, name := range Fields() {
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
	without := func(i int) bool { return r.Cells[i].Figure(figure.Baseline).Absent == memory.NoBaseline }
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
	v.Mean, v.Interval = new(stats.Round(math.Exp(sum/float64(v.Cells)), 6)), stats.MeanOf(samples)
	if v.Interval == nil {
		v.Note = why
	}
	return v
}
