// Package collect makes the run of a history from a record, by the figures that package compare computes.
//
// It decides what a cell is over time: all that is asked for, but not versions of engines, which are what changes.
package collect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/history"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Options are what a record does not have.
type Options struct {
	Commit  history.Commit
	Machine string // empty: named by its processor
	Control string // AXIS=VALUE[,AXIS=VALUE]: the control cell; empty: none, or the baseline side
	Folder  string // where the run is, for links
}

// Run makes a run of a result of one run, or of an interleaved one: then the baseline side's cells are the control
// cells of the same cells.
func Run(res *compare.Result, records []*record.Run, o Options) (*history.Run, error) {
	of := records[len(records)-1]
	out := &history.Run{Head: history.Head{Name: of.Meta.Name, Started: of.Meta.Started.UTC(), Commit: o.Commit,
		Machine: o.Machine, Folder: o.Folder, Environment: environment(of)}}
	if out.Machine == "" {
		out.Machine = Machine(of.Environment)
	}
	if out.Commit.Time.IsZero() {
		out.Commit.Time = out.Started
	}
	sides := len(records) > 1
	names := map[string]int{}
	for _, c := range res.Cells {
		at := len(out.Cells)
		cell := history.Cell{Key: Key(&c.Spec), Label: Label(&c.Spec, c.Title()), Engine: c.Title(),
			Environment: ran(c)}
		if sides && c.Run < len(records)-1 {
			cell.Key, cell.Label, cell.Fixed = cell.Key+" baseline", cell.Label+", baseline side", true
		}
		out.Cells = append(out.Cells, cell)
		for _, f := range figures(c) {
			n, known := names[f.Name]
			if !known {
				n = len(out.Figures)
				names[f.Name] = n
				out.Figures = append(out.Figures, describe(f))
			}
			for launch, v := range perLaunch(f, records[c.Run], c.Spec.ID) {
				put(out, at, launch, n, v)
			}
		}
	}
	slices.SortFunc(out.Launches, func(a, b history.Launch) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Number, b.Number))
	})
	for i := range out.Launches {
		out.Launches[i].Values = padded(out.Launches[i].Values, len(out.Figures))
	}
	return out, control(out, res, o.Control, sides)
}

// perLaunch has a figure by the number of the launch, from 1. Repetitions in one launch are not independent.
func perLaunch(f evidence.Figure, run *record.Run, cell int) map[int]float64 {
	number, all := map[int]int{}, map[int]int{} // of launches, by attempt and by launch
	for _, a := range run.Attempts {
		if a.Cell == cell && a.Counted() {
			id := a.Launch().ID
			if _, known := all[id]; !known {
				all[id] = len(all) + 1
			}
			number[a.ID] = all[id]
		}
	}
	values := map[int][]float64{}
	for _, v := range f.Values {
		if n, ok := number[v.Attempt]; ok {
			values[n] = append(values[n], v.Value)
		}
	}
	out := map[int]float64{}
	for n, list := range values {
		out[n] = stats.Median(list)
	}
	return out
}

// put sets a launch's value of a figure.
func put(r *history.Run, cell, launch, figure int, v float64) {
	at := slices.IndexFunc(r.Launches, func(l history.Launch) bool { return l.Cell == cell && l.Number == launch })
	if at < 0 {
		at = len(r.Launches)
		r.Launches = append(r.Launches, history.Launch{Cell: cell, Number: launch})
	}
	l := &r.Launches[at]
	l.Values = padded(l.Values, figure+1)
	l.Values[figure] = v
}

// padded is a list of at least n values; those that are not there are NaN.
func padded(values []float64, n int) []float64 {
	for len(values) < n {
		values = append(values, math.NaN())
	}
	return values
}

// figures are those of a cell that a gate could check, with values.
func figures(c *compare.Cell) (out []evidence.Figure) {
	lists := [][]evidence.Figure{c.Figures}
	if c.Load != nil {
		lists = append(lists, c.Load.Figures)
	}
	for _, f := range slices.Concat(lists...) {
		if row := figure.Of(f.Name); row != nil && row.Column.Place > 0 && f.Known() && !f.Arithmetic() {
			out = append(out, f)
		}
	}
	return out
}

// describe says how a figure is followed. Those of Go's benchmark format are tested: they are few, and not the same
// thing twice.
func describe(f evidence.Figure) history.Figure {
	row := figure.Of(f.Name)
	out := history.Figure{Name: f.Name, Title: f.Title, Unit: f.Unit, Ratio: f.TimeOrRate()}
	switch row.Better {
	case figure.Higher:
		out.Better = "higher"
	case figure.Lower:
		out.Better = "lower"
	}
	out.Tested = row.Bench != "" && row.Better != figure.Neither
	return out
}

// control marks the control cells: those that are named, or the baseline side's.
func control(r *history.Run, res *compare.Result, named string, sides bool) error {
	if named == "" {
		for i := range r.Cells {
			for j := range r.Cells {
				if sides && r.Cells[j].Fixed && r.Cells[j].Key == r.Cells[i].Key+" baseline" {
					r.Cells[i].Control = new(j)
				}
			}
		}
		return nil
	}
	at := -1
	for i, c := range res.Cells {
		ok, err := matches(&c.Spec, named)
		if err != nil {
			return err
		}
		if ok && at >= 0 {
			return fault.New(fault.Usage, "name more axes, such as engine=llamacpp,model=tiny",
				"--control %s: cells %q and %q both match", named, r.Cells[at].Label, r.Cells[i].Label)
		}
		if ok {
			at = i
		}
	}
	if at < 0 {
		return fault.New(fault.Usage, "name a cell by its axes, such as engine=llamacpp", "--control %s: no cell matches", named)
	}
	for i := range r.Cells {
		if i != at {
			r.Cells[i].Control = new(at)
		}
	}
	r.Cells[at].Fixed = true
	return nil
}

// matches reports whether a cell has all named values.
func matches(c *record.Cell, named string) (bool, error) {
	for part := range strings.SplitSeq(named, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return false, fault.New(fault.Usage, "use AXIS=VALUE, such as engine=llamacpp", "--control %q has no =", part)
		}
		if !axis.Named(strings.TrimSpace(name)).Matches(c, strings.TrimSpace(value)) {
			return false, nil
		}
	}
	return true, nil
}

// Key identifies a cell over time, whatever the version of its engine and the contents of its model's file.
func Key(c *record.Cell) string {
	var parts []string
	for _, a := range axis.Of(c) {
		v := a.Of(c)
		if a.Build() || v == "" || a.Part != "" {
			continue
		}
		if a.Name == axis.Model {
			v = c.Model.Name + " " + c.Model.DType
		}
		parts = append(parts, a.Name+"="+v)
	}
	return strings.Join(parts, "; ")
}

// Label names a cell for people. What most plans leave at its usual value is left out.
func Label(c *record.Cell, engine string) string {
	parts := []string{engine}
	for _, a := range axis.Of(c) {
		v := a.Of(c)
		usual := a.Name == axis.Engine || a.Name == axis.Context || a.Build() || a.Part != "" || v == "" ||
			a.Name == axis.Isolation && v == record.OfLaunch || a.Name == axis.PromptCache && v == record.CacheOff ||
			a.Name == axis.Traffic && c.Traffic == nil || a.Name == axis.Prompt && c.PromptID == 1
		if in := a.In(c); in != "" && !usual {
			parts = append(parts, in)
		}
	}
	return strings.Join(parts, ", ")
}

// Machine names a machine by what a figure may depend on. Names of hosts change with each runner of a CI.
func Machine(e record.Environment) string {
	out := fmt.Sprintf("%s, %d cores", e.CPU, e.Cores)
	for _, g := range e.GPUs {
		if g.Part == "" && g.Name != "" {
			out += ", " + g.Name
		}
	}
	return out
}

// environment is what can change a figure beside the code.
func environment(r *record.Run) map[string]string {
	e := r.Environment
	out := map[string]string{"kernel": e.Kernel, "system": e.OS, "governor": e.Governor,
		"llmparity": r.Meta.Tool.Version}
	if r.Meta.Tool.Commit != "" {
		out["llmparity"] += " " + r.Meta.Tool.Commit[:min(len(r.Meta.Tool.Commit), 10)]
	}
	out["memory"] = fmt.Sprintf("%d GiB", (e.MemoryB+1<<29)>>30)
	if p := e.Processor; p != nil {
		out["microcode"] = p.Microcode
	}
	for _, g := range e.GPUs {
		if g.Part == "" {
			out["driver of "+g.Role] = g.Driver
		}
	}
	return filled(out)
}

// ran is what a cell ran in.
func ran(c *compare.Cell) map[string]string {
	out := map[string]string{"browser": c.Browser(), "engine": c.Version(), "model library": c.Library(),
		"device": c.On(), "model": c.Spec.Model.SHA256[:min(len(c.Spec.Model.SHA256), 12)]}
	return filled(out)
}

// filled leaves out what is not known.
func filled(m map[string]string) map[string]string {
	for k, v := range m {
		if strings.TrimSpace(v) == "" {
			delete(m, k)
		}
	}
	return m
}
