// Package history keeps the figures of many runs, and names where they changed.
//
// A store has one file a run, with a line a launch, and is only added to: a commit, a machine and an environment, the
// cells, and each launch's figures. No two runs share a file, so git merges two stores without a conflict. A file is
// written beside its place and renamed, so a killed writer leaves none or all of it. A file that is cut is named and
// left out.
//
// Check tests series of runs; package change has the statistics. A series is one figure of one cell on one machine.
// Versions of engines are no part of a cell's identity: they are what a history follows.
package history

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"llmparity/internal/history/change"
	"llmparity/internal/kit/fault"
	"llmparity/internal/stats"
)

// Schema identifies the form of a run's file.
const Schema = "llmparity.history/1"

// Commit is what was measured.
type Commit struct {
	SHA     string    `json:"sha"`
	Time    time.Time `json:"time"` // runs are ordered by it
	Author  string    `json:"author,omitempty"`
	Subject string    `json:"subject,omitempty"`
}

// Short is the commit in tables.
func (c Commit) Short() string { return c.SHA[:min(len(c.SHA), 10)] }

// Cell is a cell of a run, as later runs find it again.
type Cell struct {
	Key    string `json:"key"` // of all that is asked for, versions apart
	Label  string `json:"label"`
	Engine string `json:"engine"`
	// Environment is what it ran in: engine, browser, model library.
	Environment map[string]string `json:"environment,omitempty"`
	// Control is the number of its control cell in the run, from 0; nil: it has none.
	Control *int `json:"control,omitempty"`
	// Fixed marks a control cell.
	Fixed bool `json:"fixed,omitempty"`
}

// Figure is a figure of a run.
type Figure struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Unit   string `json:"unit"`
	Better string `json:"better,omitempty"` // higher or lower; empty: neither
	Tested bool   `json:"tested,omitempty"` // changes are looked for
	Ratio  bool   `json:"ratio,omitempty"`  // other programs affect it: the ratio to the control cell is tested
}

// Head is the first line of a run's file.
type Head struct {
	Schema  string    `json:"schema"`
	Name    string    `json:"name"` // of the plan
	Started time.Time `json:"started"`
	Commit  Commit    `json:"commit"`
	Machine string    `json:"machine"`
	Folder  string    `json:"folder,omitempty"` // where the run and its report are, as it was added
	// Environment is what all cells share: kernel, drivers, llmparity.
	Environment map[string]string `json:"environment,omitempty"`
	Cells       []Cell            `json:"cells"`
	Figures     []Figure          `json:"figures"`

	ID string `json:"-"` // the name of its file
}

// When orders runs.
func (h *Head) When() time.Time { return h.Commit.Time }

// Launch has the figures of one launch of a cell, in the order of the head's; NaN: it has none.
type Launch struct {
	Cell, Number int // the cell's number in the head, from 0; the launch's, from 1
	Values       []float64
}

// Run is what a file has.
type Run struct {
	Head
	Launches []Launch
}

// Check refuses a run that can't be told from others or has nothing to follow.
func (r *Run) Check() error {
	switch {
	case len(r.Commit.SHA) < 4 || strings.ContainsFunc(r.Commit.SHA, func(c rune) bool { return c <= ' ' || c > '~' }):
		return fault.New(fault.Usage, "name the commit that was measured, such as --commit HEAD",
			"commit %q is not valid", r.Commit.SHA)
	case len(r.Launches) == 0:
		return fault.New(fault.BadRecord, "add a run with successful launches", "%s has no launch that counts", r.Name)
	}
	return nil
}

// before orders runs: by commit, then as they were measured.
func before(a, b *Head) int {
	return cmp.Or(a.When().Compare(b.When()), a.Started.Compare(b.Started), strings.Compare(a.ID, b.ID))
}

// Summary is a figure of a cell over the launches of a run. A history has millions: it is kept small.
type Summary struct {
	Cell, Name int32 // numbers of cell and figure in the head
	N          int32
	Low, High  float32 // the median's 95% interval; of fewer than six launches all of them
	Value      float64 // the median
	Middle     float64 // the mean of the middle half, which is tested
}

// Summaries has those of all cells and figures with a value.
func (r *Run) Summaries() []Summary {
	out := make([]Summary, 0, len(r.Cells)*len(r.Figures))
	byCell := func(a, b Launch) int { return cmp.Compare(a.Cell, b.Cell) }
	if !slices.IsSortedFunc(r.Launches, byCell) {
		slices.SortStableFunc(r.Launches, byCell)
	}
	values := make([]float64, 0, 16)
	for from := 0; from < len(r.Launches); {
		to := from
		for to < len(r.Launches) && r.Launches[to].Cell == r.Launches[from].Cell {
			to++
		}
		for f := range r.Figures {
			values = values[:0]
			for _, l := range r.Launches[from:to] {
				if v := l.Values[f]; !math.IsNaN(v) {
					values = append(values, v)
				}
			}
			if n := len(values); n > 0 {
				slices.Sort(values)
				low := rank(n)
				out = append(out, Summary{int32(r.Launches[from].Cell), int32(f), int32(n), float32(values[low]),
					float32(values[n-1-low]), (values[(n-1)/2] + values[n/2]) / 2, change.Middle(values)})
			}
		}
		from = to
	}
	return out
}

// ranks are results of rank, which takes long.
var ranks sync.Map

// rank is which of so many sorted launches is the lower end of the median's interval, from 0.
func rank(n int) int {
	if r, known := ranks.Load(n); known {
		return r.(int)
	}
	numbers := make([]float64, n)
	for i := range numbers {
		numbers[i] = float64(i)
	}
	r := 0
	if of := stats.MedianInterval(numbers, stats.Confidence); of != nil {
		r = int(of.Lo)
	}
	ranks.Store(n, r)
	return r
}
