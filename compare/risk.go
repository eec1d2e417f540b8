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

// refuse says of a cell why it was not launched, and in every figure that it was not.
func (c *Cell) refuse() {
	c.Refused = strings.TrimSuffix("would not fit: "+strings.Join(riskReasons(c.Risk), "; "), ": ")
	for _, list := range [][]evidence.Figure{c.Figures, c.Sampler} {
		for i := range list {
			list[i].Absent = "refused"
		}
	}
}
