package compare

import (
	"fmt"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/record"
)

// predicted adds the risk and the prediction that were recorded before the first launch.
func (c *Cell) predicted(run *record.Run, e gathered) {
	if risk, ok := run.Risks[c.Spec.ID]; ok {
		c.Risk = &risk
		if risk.Refused && len(e.all) == 0 {
			c.refuse(wontFit(c.Risk))
		}
	}
	if p, ok := run.Predictions[c.Spec.ID]; ok {
		c.Prediction = c.memory.Held(p)
	}
}

// riskReasons are those of a risk; without any, its tightest place.
func riskReasons(r *record.Risk) []string {
	if len(r.Reasons) > 0 || len(r.Places) == 0 {
		return r.Reasons
	}
	p := r.Places[0]
	return []string{fmt.Sprintf("%s: needs %s MiB (at most %s), %s available", p.Name, explain.Short(evidence.MiB(p.Need)),
		explain.Short(evidence.MiB(p.High)),
		explain.Short(evidence.MiB(p.Free)))}
}

// wontFit is why a cell that would run out of memory was not launched.
func wontFit(r *record.Risk) string {
	return strings.TrimSuffix("would not fit: "+strings.Join(riskReasons(r), "; "), ": ")
}

// refusedFor is why none of a cell's attempts was launched; empty if one was.
func refusedFor(all []*record.Attempt) (why string) {
	for _, a := range all {
		if a.Status != record.Refused {
			return ""
		}
		why = a.Error
	}
	return why
}

// refuse marks a cell and all its figures.
func (c *Cell) refuse(why string) {
	c.Refused = why
	for _, list := range [][]evidence.Figure{c.Figures, c.Sampler} {
		for i := range list {
			list[i].Absent = "refused"
		}
	}
}
