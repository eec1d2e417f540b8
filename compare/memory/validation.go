package memory

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/predict/accuracy"
	"llmparity/internal/stats"
)

// ValidationSchema identifies the layout of a marshalled Validation.
const ValidationSchema = "llmparity.validation/1"

// Validation is the accuracy of predictions over many runs. A cell counts once for each component that was both
// predicted and measured, by its launch that is closest to the median.
type Validation struct {
	Schema     string           `json:"schema"`
	Runs       int              `json:"runs"`       // read
	Without    int              `json:"without"`    // of these, without a cell that was both predicted and measured
	Components []ComponentError `json:"components"` // over all cells
	Engines    []ErrorGroup     `json:"engines"`
	Contexts   []ErrorGroup     `json:"contexts"`
	Cells      []PredictedCell  `json:"cells"` // the worst first
	Absent     []string         `json:"absent"`
	Broken     []BrokenRun      `json:"broken"`
}

// BrokenRun is a folder that cannot be read.
type BrokenRun struct {
	Dir   string `json:"dir"`
	Error string `json:"error"`
}

// ErrorGroup has the errors of cells that have something in common.
type ErrorGroup struct {
	Name       string           `json:"name"`
	Cells      int              `json:"cells"`
	Components []ComponentError `json:"components"`
}

// ComponentError sums up a component over cells. Errors are in percent of what was measured, positive if the prediction
// is too high.
type ComponentError struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	Cells  int     `json:"cells"`        // in which it was predicted and measured
	Within float64 `json:"within_range"` // share of these within the predicted range
	N      int     `json:"n"`            // of these with an error in percent: a value of 0 or less has none
	*ErrorSizes
	// Expected is the usual accuracy of such calculations.
	Expected *accuracy.Expected `json:"expected,omitempty"`
}

// ErrorSizes are of errors in percent.
type ErrorSizes struct {
	Median float64 `json:"median_error_percent"` // of the errors' size
	Bias   float64 `json:"bias_percent"`         // the mean of the errors with their signs
	Max    float64 `json:"max_error_percent"`    // the largest error's size
}

// PredictedCell is a cell that was predicted and measured.
type PredictedCell struct {
	Dir     string `json:"dir"`
	Label   string `json:"label"`
	Engine  string `json:"engine"`
	Model   string `json:"model"`
	Context int    `json:"context"`
	// Worst is the largest error of a component in multiples of its expected variance, and WorstName that component.
	Worst      float64    `json:"worst"`
	WorstName  string     `json:"worst_component"`
	Prediction Prediction `json:"forecast"`
}

// NewValidation is empty.
func NewValidation() *Validation {
	return &Validation{Schema: ValidationSchema, Components: []ComponentError{}, Engines: []ErrorGroup{},
		Contexts: []ErrorGroup{},
		Cells:    []PredictedCell{}, Absent: []string{}, Broken: []BrokenRun{}}
}

// Add adds the predicted cells of a run.
func (v *Validation) Add(cells []PredictedCell) {
	v.Runs++
	before := len(v.Cells)
	for _, c := range cells {
		if absent := c.Prediction.Absent; absent != "" {
			v.Absent = explain.AppendNew(v.Absent, c.Dir+", "+c.Label+": "+absent)
		} else if c.judge() {
			v.Cells = append(v.Cells, c)
		}
	}
	if len(v.Cells) == before {
		v.Without++
	}
}

// judge finds the worst error; false if nothing was both predicted and measured.
func (c *PredictedCell) judge() bool {
	known := false
	for _, p := range c.Prediction.Parts {
		if p.Error == nil {
			continue
		}
		known = true
		if _, other := c.Prediction.Part(figure.MemoryIncrease); p.Percent == nil || p.Expected == nil ||
			p.Name == figure.TotalMemory && other {
			continue // the increase replaces the total if it was predicted
		}
		if times := stats.Round(math.Abs(*p.Percent)/p.Expected.Variance, 6); times > c.Worst || c.WorstName == "" {
			c.Worst, c.WorstName = times, p.Name
		}
	}
	return known
}

// Close sums up what was added.
func (v *Validation) Close() {
	slices.SortStableFunc(v.Cells, func(a, b PredictedCell) int {
		return cmp.Or(cmp.Compare(b.Worst, a.Worst), cmp.Compare(a.Dir, b.Dir))
	})
	v.Components = errorsOf(v.Cells)
	v.Engines = grouped(v.Cells, func(c PredictedCell) string { return c.Engine })
	v.Contexts = grouped(v.Cells, func(c PredictedCell) int { return c.Context })
}

// grouped has the groups in the order of what their cells have in common.
func grouped[T cmp.Ordered](cells []PredictedCell, by func(PredictedCell) T) []ErrorGroup {
	of := map[T][]PredictedCell{}
	for _, c := range cells {
		of[by(c)] = append(of[by(c)], c)
	}
	out := []ErrorGroup{}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		out = append(out, ErrorGroup{Name: fmt.Sprint(key), Cells: len(of[key]), Components: errorsOf(of[key])})
	}
	return out
}

// errorsOf sums up every component that was both predicted and measured.
func errorsOf(cells []PredictedCell) []ComponentError {
	out := []ComponentError{}
	for _, row := range Components() {
		var sizes []float64
		sum, within := 0.0, 0
		e := ComponentError{Name: row.Name, Title: row.Title}
		for _, c := range cells {
			p, _ := c.Prediction.Part(row.Name)
			if p.Within == nil {
				continue
			}
			e.Cells, e.Expected = e.Cells+1, p.Expected
			if *p.Within {
				within++
			}
			if p.Percent != nil {
				sizes, sum = append(sizes, math.Abs(*p.Percent)), sum+*p.Percent
			}
		}
		if e.Cells == 0 {
			continue
		}
		e.Within = stats.Round(float64(within)/float64(e.Cells), 6)
		if e.N = len(sizes); e.N > 0 {
			e.ErrorSizes = &ErrorSizes{stats.Round(stats.Median(sizes), 6), stats.Round(sum/float64(e.N), 6),
				stats.Round(slices.Max(sizes), 6)}
		}
		out = append(out, e)
	}
	return out
}
