package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/axis"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/record"
)

// pairing is a cell with its reference cell: one of the same engine and run, with the reference value of the axes along
// which the two differ.
type pairing struct {
	reference, cell int // indexes into Cells
	axes            []*axis.Axis
}

// referenced reports whether cells of one engine are compared along an axis: it must not change what is asked, except
// for another form of the model.
func referenced(x *axis.Axis, a, b *record.Cell) bool {
	switch {
	case x.Name == axis.Model:
		return axis.OtherForm(a, b)
	case x.Name == axis.Engine || x.Across == axis.Nothing:
		return false
	}
	return x.Role != axis.Task
}

// between returns the axes along which two cells of one engine are compared; nil: they are not.
func (r *Result) between(i, j int) []*axis.Axis {
	a, b := r.Cells[i], r.Cells[j]
	if a.Run != b.Run || a.Spec.Engine != b.Spec.Engine || a.Refused != "" || b.Refused != "" || a.Foreign() {
		return nil
	}
	all := axis.Differ(&a.Spec, &b.Spec, func(*axis.Axis) bool { return true })
	if slices.ContainsFunc(all, func(x *axis.Axis) bool { return !referenced(x, &a.Spec, &b.Spec) }) {
		return nil
	}
	return all
}

// single reports whether two cells differ along one axis, or in which of several axes has a value: a bundle in place of
// a version is one change.
func single(all []*axis.Axis, a, b *record.Cell) bool {
	return len(all) == 1 || len(all) == 2 && !slices.ContainsFunc(all, func(x *axis.Axis) bool {
		return !x.Own || (x.Of(a) == "") == (x.Of(b) == "")
	})
}

// pairings compares each cell with its reference cells: along each axis with the cell that differs in nothing else and
// has the axis's reference value. A cell without such a partner, as in a plan of hand-picked cells, is compared with
// the first cell of its engine.
func (r *Result) pairings() (out []pairing) {
	for j, cell := range r.Cells {
		var partners []pairing
		for i := range r.Cells {
			if all := r.between(i, j); i != j && len(all) > 0 {
				partners = append(partners, pairing{i, j, all})
			}
		}
		near := slices.DeleteFunc(slices.Clone(partners), func(p pairing) bool {
			return !single(p.axes, &r.Cells[p.reference].Spec, &cell.Spec)
		})
		key := axesKey
		if len(near) == 0 {
			near, key = partners, func([]*axis.Axis) string { return "" }
		}
		var best evidence.Groups[string, pairing] // along each axis
		for _, p := range near {
			best.Add(key(p.axes), p)
		}
		for _, all := range best.All() {
			first := slices.MinFunc(all, func(p, q pairing) int {
				return r.order(p.reference, q.reference, p.axes)
			})
			if r.order(first.reference, j, first.axes) < 0 {
				out = append(out, first)
			}
		}
	}
	return out
}

func axesKey(all []*axis.Axis) string {
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = x.Name
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// order is below 0 if cell i is rather the reference than cell j: by the requested values, else by the order of cells,
// which is that of the plan's values.
func (r *Result) order(i, j int, along []*axis.Axis) int {
	return cmp.Or(r.requested(j, along)-r.requested(i, along), i-j)
}

// requested counts the axes in which a cell has the value that was requested for the reference cell.
func (r *Result) requested(cell int, along []*axis.Axis) (n int) {
	for _, x := range along {
		if want, has := r.reference(cell, x); has && x.Matches(&r.Cells[cell].Spec, want) {
			n++
		}
	}
	return n
}

// reference is the requested value of an axis.
func (r *Result) reference(cell int, x *axis.Axis) (value string, has bool) {
	of := r.Runs[r.Cells[cell].Run].Reference
	if value, has = of[x.Name]; !has {
		value, has = of[x.ByName()]
	}
	return value, has
}

// nativeFirst reports whether engine b is rather the reference than engine a: the requested one, else a native one
// rather than a browser.
func (r *Result) nativeFirst(a, b *Cell) bool {
	if want := r.Runs[a.Run].Reference[axis.Engine]; want != "" && a.Run == b.Run {
		return b.Spec.Engine == want && a.Spec.Engine != want
	}
	return a.Browser() != "" && b.Browser() == ""
}

// checkReference says which axis or value of a requested reference cell no cell has.
func checkReference(reference map[string]string, specs []*record.Cell) error {
	for name, value := range reference {
		x := axis.Named(name)
		known := fieldsOf(specs...)
		if !slices.Contains(known, x.ByName()) || x.ByName() == axis.Run {
			return fault.New(fault.Usage, cmp.Or(nearest.Question(name, known), "axes: "+strings.Join(known, ", ")),
				"reference cell: unknown axis %q", name)
		}
		values, matches := x.Among(specs, value)
		if !matches {
			return fault.New(fault.Usage, "use "+explain.Some(values, 8), "reference cell: no cell has %s %q", name,
				value)
		}
	}
	return nil
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
	a, b = r.values(x, c.along), r.values(y, c.along)
	for _, other := range r.Cells { // in a grid, a value names several cells
		if other != x && other.Refused == "" && r.values(other, c.along) == a {
			return x.Label, y.Label
		}
	}
	return a, b
}

// values are a cell's values of some axes, in words.
func (r *Result) values(c *Cell, along []*axis.Axis) string {
	var words []string
	for _, x := range along {
		w := r.word(x, c)
		if v := x.Value(&c.Spec); v != "" && (w == "" || len(along) == 1 && x.Name != axis.Model &&
			r.builds[x.Name] == nil && !(x.Number != nil && !math.IsNaN(x.Number(&c.Spec)))) {
			w = v // says enough where it is no number
		}
		if w != "" {
			words = append(words, w)
		}
	}
	return cmp.Or(strings.Join(words, ", "), "the default "+along[0].Title)
}
