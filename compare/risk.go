package compare

import (
	"fmt"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/record"
)

// riskReasons are those of a risk; where none is given, its tightest place.
func riskReasons(r *record.Risk) []string {
	if len(r.Reasons) > 0 || len(r.Places) == 0 {
		return r.Reasons
	}
	p := r.Places[0]
	return []string{fmt.Sprintf("%s: %s MiB, up to %s, are needed and %s are free", p.Name, explain.Short(inMiB(p.Need)),
		explain.Short(inMiB(p.High)),
		explain.Short(inMiB(p.Free)))}
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
