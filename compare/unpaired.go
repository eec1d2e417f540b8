package compare

import (
	"fmt"
	"reflect"
	"slices"

	"llmparity/compare/explain"
)

// unpaired says which cells of later runs are compared with none of another run, and why.
func (r *Result) unpaired() []Reason {
	var out []Reason
	for run := 1; run < len(r.Runs); run++ {
		all := 0
		var whys []string
		of := map[string][]string{} // labels by why
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Run != run || c.Foreign() || c.Refused != "" {
				continue
			}
			if all++; !r.paired(c, func(other *Cell) bool { return other.Run != run }) {
				why := r.difference(c)
				whys = explain.AppendNew(whys, why)
				of[why] = append(of[why], c.Label)
			}
		}
		for _, why := range whys {
			who := "cells"
			if n := len(of[why]); n < all {
				who = fmt.Sprintf("%d of %d cells (%s)", n, all, explain.Some(of[why], 4))
			}
			out = append(out, reason(Informs, explain.Unpaired, who, r.runName(run), r.runName(0), why))
		}
	}
	return out
}

// difference says in what a cell of a later run differs from all of the first run: in the first thing that leaves none.
func (r *Result) difference(c *Cell) string {
	var like []*Cell
	for i := range r.Cells {
		if o := &r.Cells[i]; o.Run == 0 && !o.Foreign() && o.Refused == "" {
			like = append(like, o)
		}
	}
	if len(like) == 0 {
		return "it has no measured cell"
	}
	for _, needs := range []struct {
		why  string
		same func(o *Cell) bool
	}{
		{"models differ", func(o *Cell) bool { return sameWeights(o, c) }},
		{"prompts differ",
			func(o *Cell) bool { return o.Spec.Prompt == c.Spec.Prompt && o.Spec.InputTokens == c.Spec.InputTokens }},
		{"engines differ", func(o *Cell) bool { return o.Spec.Engine == c.Spec.Engine }},
		{"KV cache dtypes differ", func(o *Cell) bool { return o.Spec.KVDType == c.Spec.KVDType }},
		{"starts differ (cold or warm)", func(o *Cell) bool { return o.Spec.Start == c.Spec.Start }},
		{"traffic differs", func(o *Cell) bool { return reflect.DeepEqual(o.Spec.Traffic, c.Spec.Traffic) }},
	} {
		like = slices.DeleteFunc(like, func(o *Cell) bool { return !needs.same(o) })
		if len(like) == 0 {
			return needs.why
		}
	}
	return "other cells of this run match better"
}
