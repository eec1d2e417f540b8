package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/axis"
	"llmparity/internal/record"
)

// label names every cell by its engine and by the axes along which cells differ.
func (r *Result) label() {
	for _, c := range r.Cells {
		words := []string{c.Title()}
		if own := r.ownWords(c); len(own) > 0 {
			words[0] += " (" + strings.Join(own, "; ") + ")"
		}
		for _, x := range labelled(c) {
			alike := func(o *Cell) bool { return o.Foreign() == c.Foreign() }
			if !x.Own && x.Name != axis.Engine && r.differs(c, x.In, alike) {
				words = append(words, x.In(&c.Spec))
			}
		}
		if name := r.Runs[c.Run].Name; name != "" && slices.ContainsFunc(r.Cells, func(o *Cell) bool {
			return o.Foreign() == c.Foreign() && r.Runs[o.Run].Name != name
		}) {
			words = append(words, name)
		}
		c.Label = strings.Join(words, ", ")
	}
	r.uniqueLabels()
}

// ownWords is how a cell differs from other cells of its engine: along the engine's own axes, and in what the engine
// reports, unless that follows from a setting or axis that the plan varies.
func (r *Result) ownWords(c *Cell) []string {
	engine := func(o *Cell) bool { return o.Refused == "" && o.Spec.Engine == c.Spec.Engine }
	var out []string
	c.reported = nil
	for _, x := range labelled(c) {
		if x.Own && r.differs(c, x.In, engine) {
			out = append(out, x.In(&c.Spec))
		}
	}
	for _, x := range evidence.AllReported() {
		word := ""
		if x.Word != nil {
			word = x.Word(&c.Setup)
		}
		if word != "" && slices.ContainsFunc(r.Cells, func(o *Cell) bool {
			return engine(o) && x.Word(&o.Setup) != word && maps.Equal(o.Spec.Settings, c.Spec.Settings) &&
				(x.Axis == "" || axis.Named(x.Axis).Equal(&o.Spec, &c.Spec))
		}) {
			out = append(out, word)
			c.reported = append(c.reported, x.Axis)
		}
	}
	return out
}

// LabelReports says whether the label has what the engine reports along an axis.
func (c *Cell) LabelReports(name string) bool { return slices.Contains(c.reported, name) }

// Axes are the axes of all cells.
func (r *Result) Axes() []*axis.Axis { return axis.Of(specs(r.Cells)...) }

// labelled are the axes that labels name.
func labelled(c *Cell) []*axis.Axis {
	return slices.DeleteFunc(slices.Clone(axis.Of(&c.Spec)), func(x *axis.Axis) bool { return x.Part != "" })
}

// differs reports whether the word for a cell differs from that for a cell for which with returns true.
func (r *Result) differs(c *Cell, word func(*record.Cell) string, with func(*Cell) bool) bool {
	own := word(&c.Spec)
	return own != "" &&
		slices.ContainsFunc(r.Cells, func(o *Cell) bool { return with(o) && word(&o.Spec) != own })
}

// uniqueLabels adds the run to labels that occur in several runs, and a number to labels that are still equal.
func (r *Result) uniqueLabels() {
	var runs evidence.Groups[string, int] // by label
	for _, c := range r.Cells {
		evidence.AddNew(&runs, c.Label, c.Run)
	}
	seen := map[string]int{}
	for _, c := range r.Cells {
		if len(runs.Of[c.Label]) > 1 {
			c.Label += ", " + r.RunName(c.Run)
		}
		if seen[c.Label]++; seen[c.Label] > 1 {
			c.Label = fmt.Sprintf("%s #%d", c.Label, seen[c.Label])
		}
	}
}

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
