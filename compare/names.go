package compare

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/label"
	"llmparity/internal/axis"
	"llmparity/internal/record"
)

// name names the sides of an interleaved run, and labels the cells.
func (r *Result) name(runs []*record.Run) {
	r.nameSides(runs)
	r.label()
	r.labelSides()
}

// nameSides names interleaved runs by what differs between them.
func (r *Result) nameSides(runs []*record.Run) {
	if !r.Interleaved() {
		return
	}
	for i, name := range label.Sides(r.subjects(), runs) {
		r.Runs[i].Side = name
	}
}

// Interleaved reports whether launches of the runs alternated with those of the first run.
func (r *Result) Interleaved() bool {
	for _, run := range r.Runs[min(1, len(r.Runs)):] {
		if run.Against == "" || run.Against != filepath.Base(r.Runs[0].Dir) {
			return false
		}
	}
	return len(r.Runs) > 1
}

// subjects are the cells without their figures.
func (r *Result) subjects() []evidence.Subject {
	out := make([]evidence.Subject, len(r.Cells))
	for i, c := range r.Cells {
		out[i] = evidence.Subject{Setup: &c.Setup, Run: c.Run, Title: c.Title(), Refused: c.Refused != ""}
	}
	return out
}

// label labels the cells.
func (r *Result) label() {
	runs := make([]label.Run, len(r.Runs))
	for i := range runs {
		runs[i] = label.Run{Plan: r.Runs[i].Name, Name: r.RunName(i)}
	}
	r.labels = label.Of(r.subjects(), runs)
	for i, c := range r.Cells {
		c.Label, c.reported = r.labels.Cells[i].Label, r.labels.Cells[i].Reported
	}
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

// labelSides labels the cells of an interleaved run by their side, if each side has one cell.
func (r *Result) labelSides() {
	if !r.Interleaved() || len(r.Cells) != len(r.Runs) {
		return
	}
	for i, c := range r.Cells {
		if c.Run != i || r.Runs[i].Side == "" {
			return
		}
	}
	for i, c := range r.Cells {
		c.Label = r.Runs[i].Side
	}
}

// LabelReports says whether the label has what the engine reports along an axis.
func (c *Cell) LabelReports(name string) bool { return slices.Contains(c.reported, name) }

// Axes are the axes of all cells.
func (r *Result) Axes() []*axis.Axis { return axis.Of(specs(r.Cells)...) }

// Distinct lists the values of cells, each once, in the order of cells.
func (r *Result) Distinct(of func(*Cell) string) []string {
	var out []string
	for _, c := range r.Cells {
		if s := of(c); s != "" {
			out = explain.AppendNew(out, s)
		}
	}
	return out
}

// Engines groups cells by what they ran with.
func (r *Result) Engines() []Ran {
	type key struct{ engine, with string }
	var by evidence.Groups[key, int]
	of := map[string]int{} // groups of an engine
	for i, c := range r.Cells {
		k := key{c.Spec.Engine, c.With}
		if by.Of[k] == nil {
			of[k.engine]++
		}
		by.Add(k, i)
	}
	var out []Ran
	for k, cells := range by.All() {
		g := Ran{Name: r.Cells[cells[0]].Title(), With: k.with}
		if of[k.engine] > 1 {
			var labels []string
			for _, i := range cells {
				labels = append(labels, r.Cells[i].Label)
			}
			g.Name = strings.Join(labels, "; ")
		}
		out = append(out, g)
	}
	return out
}

// Ran is a group of cells whose engine ran with the same versions, dtypes and device.
type Ran struct {
	Name string // the engine, or the cells if the engine has several groups
	With string
}

// SideNames name two cells by what differs between them: runs, engines, or values of the axes along which they are
// compared. They are equal to no other side's name in the result.
func (r *Result) SideNames(c *Comparison) (a, b string) {
	x, y := r.Cells[c.A], r.Cells[c.B]
	switch {
	case x.Run != y.Run:
		return r.RunName(x.Run), r.RunName(y.Run)
	case x.Spec.Engine != y.Spec.Engine:
		return x.Title(), y.Title()
	case len(c.along) == 0:
		return x.Label, y.Label
	}
	a, b = r.labels.Values(c.A, c.along), r.labels.Values(c.B, c.along)
	for i, other := range r.Cells { // in a grid, a value names several cells
		if i != c.A && other.Refused == "" && r.labels.Values(i, c.along) == a {
			return x.Label, y.Label
		}
	}
	return a, b
}

// BuildSum has the beginnings of the hashes of the builds that a run ran; empty: they are not known.
func (r *Result) BuildSum(run int) string {
	var all []string
	for _, c := range r.Cells {
		if sum := label.Sum(&c.Setup); c.Run == run && sum != "" {
			all = explain.AppendNew(all, sum)
		}
	}
	return strings.Join(all, ", ")
}

// Title is what distinguishes a run, or else its plan's name.
func (r *Run) Title() string { return cmp.Or(r.Side, r.Name) }
