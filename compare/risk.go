package compare

import (
	"fmt"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/record"
)

// predicted puts beside a cell what the record has of it from before its first launch.
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

// riskReasons are those of a risk; where none is given, its tightest place.
func riskReasons(r *record.Risk) []string {
	if len(r.Reasons) > 0 || len(r.Places) == 0 {
		return r.Reasons
	}
	p := r.Places[0]
	return []string{fmt.Sprintf("%s: %s MiB, up to %s, are needed and %s are free", p.Name, explain.Short(evidence.MiB(p.Need)),
		explain.Short(evidence.MiB(p.High)),
		explain.Short(evidence.MiB(p.Free)))}
}

// wontFit is why a cell was not launched that would run out of memory.
func wontFit(r *record.Risk) string {
	return strings.TrimSuffix("would not fit: "+strings.Join(riskReasons(r), "; "), ": ")
}

// refusedFor is why none of a cell's attempts was launched; empty where one was, or where there is none.
func refusedFor(all []*record.Attempt) (why string) {
	for _, a := range all {
		if a.Status != record.Refused {
			return ""
		}
		why = a.Error
	}
	return why
}

// refuse says of a cell why it was not launched, and in every figure that it was not.
func (c *Cell) refuse(why string) {
	c.Refused = why
	for _, list := range [][]evidence.Figure{c.Figures, c.Sampler} {
		for i := range list {
			list[i].Absent = "refused"
		}
	}
}
