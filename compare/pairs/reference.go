package pairs

import (
	"cmp"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/internal/axis"
	"llmparity/internal/record"
)

// withReference pairs each cell with its reference cells: along each axis with the cell that differs in nothing else
// and has the axis's reference value. A cell without such a partner, as in a plan of hand-picked cells, is compared
// with the first cell of its engine.
func (c *cells) withReference() (out []Pair) {
	for j := range c.all {
		var partners []Pair
		for i := range c.all {
			if all := c.between(i, j); i != j && len(all) > 0 {
				partners = append(partners, Pair{i, j, all})
			}
		}
		near := slices.DeleteFunc(slices.Clone(partners), func(p Pair) bool {
			return !single(p.Along, &c.all[p.A].Spec, &c.all[j].Spec)
		})
		key := axesKey
		if len(near) == 0 {
			near, key = partners, func([]*axis.Axis) string { return "" }
		}
		var best evidence.Groups[string, Pair] // along each axis
		for _, p := range near {
			best.Add(key(p.Along), p)
		}
		for _, all := range best.All() {
			first := slices.MinFunc(all, func(p, q Pair) int {
				return c.order(p.A, q.A, p.Along)
			})
			if c.order(first.A, j, first.Along) < 0 {
				out = append(out, first)
			}
		}
	}
	return out
}

// between returns the axes along which two cells of one engine are compared; nil: they are not.
func (c *cells) between(i, j int) []*axis.Axis {
	a, b := &c.all[i], &c.all[j]
	if a.Run != b.Run || a.Spec.Engine != b.Spec.Engine || a.Refused || b.Refused || a.Foreign() {
		return nil
	}
	all := axis.Differ(&a.Spec, &b.Spec, func(*axis.Axis) bool { return true })
	if slices.ContainsFunc(all, func(x *axis.Axis) bool { return !referenced(x, &a.Spec, &b.Spec) }) {
		return nil
	}
	return all
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

// single reports whether two cells differ along one axis, or in which of several axes has a value: a bundle in place of
// a version is one change.
func single(all []*axis.Axis, a, b *record.Cell) bool {
	return len(all) == 1 || len(all) == 2 && !slices.ContainsFunc(all, func(x *axis.Axis) bool {
		return !x.Own || (x.Of(a) == "") == (x.Of(b) == "")
	})
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
func (c *cells) order(i, j int, along []*axis.Axis) int {
	return cmp.Or(c.requested(j, along)-c.requested(i, along), i-j)
}

// requested counts the axes in which a cell has the value that was requested for the reference cell.
func (c *cells) requested(cell int, along []*axis.Axis) (n int) {
	for _, x := range along {
		if want, has := c.reference(cell, x); has && x.Matches(&c.all[cell].Spec, want) {
			n++
		}
	}
	return n
}

// reference is the requested value of an axis.
func (c *cells) reference(cell int, x *axis.Axis) (value string, has bool) {
	of := c.references[c.all[cell].Run]
	if value, has = of[x.Name]; !has {
		value, has = of[x.ByName()]
	}
	return value, has
}
