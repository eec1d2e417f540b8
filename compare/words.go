package compare

import (
	"slices"

	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
)

func (r *Result) engines() []string {
	var out []string
	for _, c := range r.Cells {
		out = explain.AppendNew(out, c.Spec.Engine)
	}
	return out
}

// baselines lists the engines that have a baseline and those that can have none.
func (r *Result) baselines() (with, without []string) {
	for _, c := range r.Cells {
		switch f := c.Figure(figure.Baseline); {
		case f.Known():
			with = explain.AppendNew(with, c.Spec.Engine)
		case f.Absent == memory.NoBaseline:
			without = explain.AppendNew(without, c.Spec.Engine)
		}
	}
	return with, without
}

// isolated lists cells that stand in no comparison.
func (r *Result) isolated() []string {
	var out []string
	for i, c := range r.Cells {
		if c.Refused == "" && !c.Foreign() &&
			!slices.ContainsFunc(r.Comparisons, func(p Comparison) bool { return p.A == i || p.B == i }) {
			out = append(out, c.Label)
		}
	}
	return out
}
