package compare

import (
	"strings"

	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

// predicted adds the risk and the prediction that were recorded before the first launch.
func (c *Cell) predicted(run *record.Run, e gathered) {
	if risk, ok := run.Risks[c.Spec.ID]; ok {
		c.Risk = &risk
		if risk.Refused && len(e.all) == 0 {
			c.refuse(strings.TrimSuffix("would not fit: "+strings.Join(risk.Reasons, "; "), ": "))
		}
	}
	if p, ok := run.Predictions[c.Spec.ID]; ok {
		c.Prediction = c.memory.Held(p)
	}
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
