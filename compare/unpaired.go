package compare

import (
	"fmt"
	"reflect"
	"slices"

	"llmparity/compare/explain"
)

// unpairedWords say which cells of later runs are set against none of another run, and why: whoever names two runs
// wants to know what became of the second.
func (r *Result) unpairedWords() []string {
	var out []string
	for run := 1; run < len(r.Runs); run++ {
		all := 0
		var whys []string
		of := map[string][]string{} // labels by why
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Run != run || c.Foreign() || c.Refused != "" {
				continue
			}
			all++
			if !r.acrossRuns(i) {
				why := r.unpaired(c)
				whys = explain.AppendNew(whys, why)
				of[why] = append(of[why], c.Label)
			}
		}
		for _, why := range whys {
			who := "Nothing"
			if n := len(of[why]); n < all {
				who = fmt.Sprintf("None of %d of the %d cells (%s)", n, all, explain.Some(of[why], 4))
			}
			out = append(out, fmt.Sprintf("%s of run %s is set against run %s, the baseline: %s.", who, r.runName(run),
				r.runName(0), why))
		}
	}
	return out
}

// acrossRuns tells whether a cell is set against one of another run.
func (r *Result) acrossRuns(cell int) bool {
	return slices.ContainsFunc(r.Comparisons, func(c Comparison) bool {
		return (c.A == cell || c.B == cell) && r.Cells[c.A].Run != r.Cells[c.B].Run
	})
}

// unpaired says in what a cell of a later run differs from all of the first run: in the first thing that leaves none.
func (r *Result) unpaired(c *Cell) string {
	var like []*Cell
	for i := range r.Cells {
		if o := &r.Cells[i]; o.Run == 0 && !o.Foreign() && o.Refused == "" {
			like = append(like, o)
		}
	}
	if len(like) == 0 {
		return "that one has no cell of an engine's"
	}
	for _, needs := range []struct {
		why  string
		same func(o *Cell) bool
	}{
		{"the models are not the same", func(o *Cell) bool { return sameWeights(o, c) }},
		{"the prompts are not the same",
			func(o *Cell) bool { return o.Spec.Prompt == c.Spec.Prompt && o.Spec.InputTokens == c.Spec.InputTokens }},
		{"the engines are not the same", func(o *Cell) bool { return o.Spec.Engine == c.Spec.Engine }},
		{"the KV caches were asked for in other numbers",
			func(o *Cell) bool { return o.Spec.KVDType == c.Spec.KVDType }},
		{"models' files were not in memory alike (start)", func(o *Cell) bool { return o.Spec.Start == c.Spec.Start }},
		{"requests did not come in the same way (traffic)",
			func(o *Cell) bool { return reflect.DeepEqual(o.Spec.Traffic, c.Spec.Traffic) }},
	} {
		like = slices.DeleteFunc(like, func(o *Cell) bool { return !needs.same(o) })
		if len(like) == 0 {
			return needs.why
		}
	}
	return "others of the same run are more like it"
}
