// Package pairs says which cells of a result are compared with which: it knows what they request, and no figure.
package pairs

import (
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/axis"
	"llmparity/internal/record"
)

// Pair is two cells that are compared, by their indexes. A is the baseline or the reference.
type Pair struct {
	A, B int
	// Along has the axes along which the cells of one engine differ; nil: engines or runs are compared.
	Along []*axis.Axis
}

// Of pairs cells of runs: first engines and runs, then each cell with its reference cells. references has the requested
// values of each run's reference cell, by axis.
func Of(all []evidence.Subject, references []map[string]string) []Pair {
	c := cells{all, references}
	var out []Pair
	for i := range all {
		for j := i + 1; j < len(all); j++ {
			switch a, b := &all[i], &all[j]; {
			case !c.related(a, b):
			case c.nativeFirst(a, b) && a.Run == b.Run:
				out = append(out, Pair{A: j, B: i})
			default:
				out = append(out, Pair{A: i, B: j})
			}
		}
	}
	return append(out, c.withReference()...)
}

// cells are the cells to pair.
type cells struct {
	all        []evidence.Subject
	references []map[string]string // by run
}

// related reports whether two cells are a pair that readers want to compare: one task, and no better partner. Between
// runs, a cell is compared with the same engine in the first run, the baseline, or in another run if the first has no
// such cell. It is compared with another engine there only if neither run has both engines.
func (c *cells) related(a, b *evidence.Subject) bool {
	if a.Refused || b.Refused || !SameTask(&a.Spec, &b.Spec) || c.nearer(a, b) {
		return false
	}
	if a.Run == b.Run {
		return a.Spec.Engine != b.Spec.Engine
	}
	if a.Run > 0 && c.has(0, b) {
		return false
	}
	return a.Spec.Engine == b.Spec.Engine || !c.has(a.Run, b) && !c.has(b.Run, a)
}

func (c *cells) has(run int, like *evidence.Subject) bool {
	return slices.ContainsFunc(c.all, func(o evidence.Subject) bool {
		return o.Run == run && o.Spec.Engine == like.Spec.Engine && SameTask(&o.Spec, &like.Spec)
	})
}

// SameTask reports whether two cells may be set side by side.
func SameTask(a, b *record.Cell) bool {
	unpaired := func(x *axis.Axis) bool { return x.Across == axis.Unpaired }
	return len(axis.Differ(a, b, unpaired)) == 0
}

// nearer reports whether one of two cells has a partner of the other's engine and run that differs less: a plan with
// several output lengths compares cells of the same length. Each value of an engine's own axes is compared with other
// engines.
func (c *cells) nearer(a, b *evidence.Subject) bool {
	apart := differences(a, b)
	if apart == 0 {
		return false
	}
	instead := func(o, of *evidence.Subject) bool {
		return o.Run == of.Run && o.Spec.Engine == of.Spec.Engine && (a.Spec.Engine == b.Spec.Engine || sameOwn(o, of))
	}
	for i := range c.all {
		o := &c.all[i]
		if instead(o, b) && SameTask(&a.Spec, &o.Spec) && differences(a, o) < apart ||
			instead(o, a) && SameTask(&o.Spec, &b.Spec) && differences(o, b) < apart {
			return true
		}
	}
	return false
}

// differences counts in what else two cells of one task differ.
func differences(a, b *evidence.Subject) int {
	n := len(axis.Differ(&a.Spec, &b.Spec, func(x *axis.Axis) bool {
		return x.Across != axis.Unpaired && x.Name != axis.Engine
	}))
	if a.Says("kv_dtype") != b.Says("kv_dtype") {
		n++
	}
	return n
}

// sameOwn reports whether two cells of one engine have the same values of its own axes.
func sameOwn(a, b *evidence.Subject) bool {
	return len(axis.Differ(&a.Spec, &b.Spec, func(x *axis.Axis) bool { return x.Own })) == 0
}

// nativeFirst reports whether engine b is rather the reference than engine a: the requested one, else a native one
// rather than a browser.
func (c *cells) nativeFirst(a, b *evidence.Subject) bool {
	if want := c.references[a.Run][axis.Engine]; want != "" && a.Run == b.Run {
		return b.Spec.Engine == want && a.Spec.Engine != want
	}
	return a.Browser() != "" && b.Browser() == ""
}
