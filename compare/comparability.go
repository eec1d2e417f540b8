package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
)

// reasons lists what may be compared with what. A reason that many pairs of cells share is listed once.
func (r *Result) reasons() []Reason {
	out := []Reason{}
	add := func(when bool, of explain.Reason, args ...any) {
		if when {
			out = append(out, reason(Informs, of, args...))
		}
	}
	if len(r.Cells) == 0 {
		add(true, explain.NoCell)
		return out
	}
	out = append(out, r.unpaired()...)
	engines := r.Distinct((*Cell).Title)
	add(len(r.Runs) == 1 && len(engines) == 1 && len(r.Comparisons) == 0, explain.OneEngine, strings.Join(engines, ""))
	out = append(append(out, r.kernels()...), r.ofPairs()...)
	is := func(marked bool) bool {
		return slices.ContainsFunc(r.Comparisons, func(c Comparison) bool {
			return c.Refused == "" && (len(c.Different) > 0) == marked
		})
	}
	prompts := ""
	for _, c := range r.Comparisons {
		if c.Refused == "" {
			prompts = cmp.Or(prompts, PromptsDiffer(r.Cells[c.A], r.Cells[c.B]))
		}
	}
	add(is(false) && prompts == "", explain.Comparable)
	add(is(false) && prompts != "", explain.OtherPrompts, prompts)
	asked := ""
	if r.Statistics.AllowDifferent {
		asked = " (--allow-different)"
	}
	add(is(true), explain.Marked, asked)
	those := func(name func(*Cell) string, are func(*Cell) bool) []string {
		return r.Distinct(func(c *Cell) string {
			if are(c) {
				return name(c)
			}
			return ""
		})
	}
	label := func(c *Cell) string { return c.Label }
	with := those((*Cell).Title, func(c *Cell) bool { return c.Figure(figure.Baseline).Known() })
	without := those((*Cell).Title, func(c *Cell) bool { return c.Figure(figure.Baseline).Lacks == evidence.NoProcess })
	add(len(with) > 0 && len(without) > 0, explain.IncreasesDiffer, strings.Join(without, ", "),
		strings.Join(with, ", "))
	foreign := those(label, (*Cell).Foreign)
	add(len(foreign) > 0, explain.ForeignRows, strings.Join(foreign, "; "))
	alone := those(label, func(c *Cell) bool {
		return c.Refused == "" && !c.Foreign() && !r.paired(c, func(*Cell) bool { return true })
	})
	add(len(alone) > 0 && len(engines) > 1, explain.NoPartner, strings.Join(alone, "; "))
	return out
}

// paired reports whether a cell is compared with one for which something holds.
func (r *Result) paired(cell *Cell, with func(*Cell) bool) bool {
	return slices.ContainsFunc(r.Comparisons, func(c Comparison) bool {
		a, b := r.Cells[c.A], r.Cells[c.B]
		return a == cell && with(b) || b == cell && with(a)
	})
}

// mostTexts is how many texts of one reason get a line each.
const mostTexts = 3

// ofPairs lists the reasons of all pairs of cells, each once. A reason with many texts, which differ in values, is one
// line.
func (r *Result) ofPairs() []Reason {
	var all []Reason
	texts := map[string][]string{} // by code
	for i, c := range r.Comparisons {
		for _, d := range c.reasons {
			texts[d.Code] = explain.AppendNew(texts[d.Code], d.Text)
			d.Pairs = []int{i}
			all = append(all, d)
		}
	}
	var out []Reason
	for _, d := range all {
		if len(texts[d.Code]) > mostTexts && d.many != "" {
			d.Text = d.many
		}
		at := slices.IndexFunc(out,
			func(o Reason) bool { return o.Code == d.Code && o.Text == d.Text && o.Effect == d.Effect })
		if at < 0 {
			out = append(out, d)
		} else {
			out[at].Pairs = explain.AppendNew(out[at].Pairs, d.Pairs[0])
		}
	}
	for i := range out {
		out[i].Text += r.whose(out[i].Pairs)
	}
	return out
}

// whose names the pairs that a reason is about; empty: all of them.
func (r *Result) whose(pairs []int) string {
	if len(pairs) == len(r.Comparisons) {
		return ""
	}
	if c := r.Comparisons[pairs[0]]; len(pairs) == 1 {
		return fmt.Sprintf(" (%s and %s)", r.Cells[c.A].Label, r.Cells[c.B].Label)
	}
	all := r.Distinct((*Cell).Title)
	var engines []string
	for _, i := range pairs {
		c := r.Comparisons[i]
		both := []string{r.Cells[c.A].Title(), r.Cells[c.B].Title()}
		slices.SortFunc(both, func(a, b string) int { return slices.Index(all, a) - slices.Index(all, b) })
		engines = explain.AppendNew(engines, strings.Join(slices.Compact(both), " and "))
	}
	return fmt.Sprintf(" (%s: %d of %d pairs of cells)", explain.Some(engines, mostTexts), len(pairs),
		len(r.Comparisons))
}

// kernels says where model libraries come from.
func (r *Result) kernels() []Reason {
	var out []Reason
	for _, c := range r.Cells {
		library, d := c.ModelLibrary(), Reason{}
		switch {
		case library == nil:
			continue
		case library.Maker == "":
			d = reason(Informs, explain.GivenKernels, c.Title(), library.Variant)
		case library.Unusual():
			d = reason(Informs, explain.OtherMaker, c.Title(), library.Maker, library.Usual, library.Variant)
		default:
			d = reason(Informs, explain.UsualKernels, c.Title(), library)
		}
		if !slices.ContainsFunc(out, func(o Reason) bool { return o.Text == d.Text }) {
			out = append(out, d)
		}
	}
	return out
}

// unpaired lists cells of later runs that are compared with no cell of another run, and why.
func (r *Result) unpaired() []Reason {
	var out []Reason
	for run := 1; run < len(r.Runs); run++ {
		all := 0
		var by evidence.Groups[string, string] // labels by why
		for _, c := range r.Cells {
			if c.Run != run || c.Foreign() || c.Refused != "" {
				continue
			}
			if all++; !r.paired(c, func(other *Cell) bool { return other.Run != run }) {
				by.Add(r.difference(c), c.Label)
			}
		}
		for why, labels := range by.All() {
			who := "cells"
			if n := len(labels); n < all {
				who = fmt.Sprintf("%d of %d cells (%s)", n, all, explain.Some(labels, 4))
			}
			out = append(out, reason(Informs, explain.Unpaired, who, r.RunName(run), r.RunName(0), why))
		}
	}
	return out
}

// difference names the first axis along which a cell of a later run differs from all cells of the first run that are
// like it so far.
func (r *Result) difference(c *Cell) string {
	var like []*Cell
	for _, o := range r.Cells {
		if o.Run == 0 && !o.Foreign() && o.Refused == "" {
			like = append(like, o)
		}
	}
	if len(like) == 0 {
		return "the baseline run has no measured cell"
	}
	for _, role := range []axis.Role{axis.Task, axis.Setting, axis.Measurement} {
		for _, x := range axis.Of(specs(append(like, c))...) {
			if x.Role != role || x.Part != "" {
				continue
			}
			like = slices.DeleteFunc(like, func(o *Cell) bool { return !x.Equal(&o.Spec, &c.Spec) })
			if len(like) == 0 {
				return x.Phrase + " differ"
			}
		}
	}
	return "other cells of this run match better"
}
