package compare

import (
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/parity"
	"llmparity/compare/ship"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// ofForms are the axes along which cells have forms of one model.
var ofForms = []string{axis.Model, axis.Weights, axis.DType}

// forms are tables of cells that differ in forms of one model and in engines alone. Several runs have none: the
// question is then how runs differ.
func (r *Result) forms() (out []*ship.Table) {
	if len(r.Runs) != 1 {
		return nil
	}
	var groups evidence.Groups[[2]string, *Cell]
	for _, c := range r.Cells {
		family := axis.Family(&c.Spec.Model)
		if c.Refused == "" && c.Launches.Counted > 0 && !c.Foreign() && family != "" {
			groups.Add([2]string{family, axis.Key(&c.Spec, r.variesWithinEngines)}, c)
		}
	}
	for _, all := range groups.All() {
		var cells []ship.Cell
		for _, c := range all {
			cells = append(cells, r.form(c, all))
		}
		t := ship.New(cells, ship.Rules{Reference: r.referenceForm(all), MinEffect: r.Statistics.MinEffect,
			Tolerance: r.Statistics.Perplexity, Change: r.perplexityChange})
		if t == nil {
			continue
		}
		t.Model = axis.Called(&all[0].Spec.Model)
		if len(groups.Keys) > 1 {
			t.Request = all[0].Label
		}
		out = append(out, t)
	}
	return out
}

// variesWithinEngines reports whether cells of one engine differ along an axis that is none of forms.
func (r *Result) variesWithinEngines(x *axis.Axis) bool {
	if x.Own || x.Name == axis.Engine || slices.Contains(ofForms, x.Name) {
		return false
	}
	for i, a := range r.Cells {
		for _, b := range r.Cells[:i] {
			if a.Spec.Engine == b.Spec.Engine && !x.Equal(&a.Spec, &b.Spec) {
				return true
			}
		}
	}
	return false
}

// form is a cell as package ship takes it.
func (r *Result) form(c *Cell, among []*Cell) ship.Cell {
	m := &c.Spec.Model
	var models []*record.Model
	for _, o := range among {
		models = append(models, &o.Spec.Model)
	}
	words := []string{axis.FormNameAmong(m, models)}
	for _, x := range []*axis.Axis{axis.Named(axis.Weights), axis.Named(axis.DType)} {
		if slices.ContainsFunc(among, func(o *Cell) bool { return x.Value(&o.Spec) != x.Value(&c.Spec) }) {
			words = append(words, x.In(&c.Spec))
		}
	}
	engine := c.Title()
	if set := c.Set(); set != "" {
		engine += " (" + set + ")"
	}
	peak := c.Points().Peak
	return ship.Cell{Index: slices.Index(r.Cells, c), Key: formKey(&c.Spec), Engine: engine, Browser: c.Browser() != "",
		Form:      strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", "),
		OnCPU:     c.Device != nil && c.Device.Class == record.SoftwareAdapter,
		DownloadB: m.FileB, Peak: peak, Launches: peak.PerLaunch(c.counted),
		Scored: c.Quality.Whole() && c.Figure(figure.Perplexity).Known() && !c.Quality.Guesses()}
}

// formKey identifies a form. Of a plan that names files for engines, these are one form.
func formKey(c *record.Cell) string {
	m := &c.Model
	file := m.Values()
	if m.Form != "" {
		file = m.Name
	}
	return strings.Join([]string{file, axis.Named(axis.Weights).Value(c), c.DType}, "\n")
}

// referenceForm is the key of the form of a reference cell.
func (r *Result) referenceForm(all []*Cell) string {
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		other := func(name string) bool { return !slices.Contains(ofForms, name) }
		if a := r.Cells[c.A]; c.Axes != nil && !slices.ContainsFunc(c.Axes, other) && slices.Contains(all, a) {
			return formKey(&a.Spec)
		}
	}
	return formKey(&all[0].Spec)
}

// perplexityChange compares the perplexities of two cells, by their indexes.
func (r *Result) perplexityChange(base, now int) ship.Change {
	each := r.Cells[now].Quality.Changes(r.Cells[base].Quality, figure.NLLChange)
	mean, _, _ := stats.Moments(each)
	c := ship.Change{Share: math.Expm1(mean), Windows: len(each)}
	if len(each) < parity.MinWindows {
		return c
	}
	if c.Interval = stats.MeanInterval(each, stats.Confidence); c.Interval != nil {
		c.Interval.Lo, c.Interval.Hi = math.Expm1(c.Interval.Lo), math.Expm1(c.Interval.Hi)
	}
	return c
}
