package gate

import (
	"fmt"
	"math"
	"slices"

	"llmparity/compare"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
)

// asked is a change to check.
type asked struct {
	gates.Change
	// beside says that nobody asked for it: CPU time is checked beside the decode speed. It can fail the gate, and what
	// it cannot decide is left out.
	beside bool
}

// asked lists the gate's changes, and CPU time beside each check of the decode speed with the same tolerance. Other
// programs make an engine slower by far more than they make it compute. A gate that has CPU time itself gets no other.
func (j *judge) asked() []asked {
	var out []asked
	own := slices.ContainsFunc(j.gate.Changes, func(c gates.Change) bool { return c.Figure.Name == figure.TokenCPU })
	for _, c := range j.gate.Changes {
		out = append(out, asked{Change: c})
	}
	for _, c := range j.gate.Changes {
		if c.Figure.Name == figure.DecodeTPS && !own && j.base != nil {
			c.Figure, c.Change = figure.Of(figure.TokenCPU), math.Abs(c.Change)
			out = append(out, asked{Change: c, beside: true})
		}
	}
	return out
}

// unjudged says why the CPU time of a pair of cells is not judged; empty: it is, or the figure is another one.
func (p pair) unjudged(name string) string {
	if !figure.OfCPU(name) {
		return ""
	}
	for _, c := range []*compare.Cell{p.now, p.base} {
		if why := c.UnjudgedCPU(); why != "" {
			return why
		}
	}
	return ""
}

// enoughForParts is the fewest launches a side at which kinds of processes are looked at by themselves: with fewer, the
// further tests would take power from all others and find nothing.
const enoughForParts = 10

// parts asks of each kind of processes whether it alone adds more CPU time than is tolerated of all.
func (j *judge) parts(whole compare.Against, check gates.Check, level gates.Level, c gates.Change,
	p pair) (out []*question) {
	if min(whole.Left.N, whole.Right.N) < enoughForParts {
		return nil
	}
	for _, part := range compare.CPUParts(whole, p.base, p.now, c.Change) {
		check.Part = part.Role
		check.Name = fmt.Sprintf("%s of %s %s than %s", c.Figure.Asked(), part.Role, allowed(c), j.named)
		q := j.question(check, level, c, p, part.Against)
		q.offset = part.Offset
		out = append(out, q)
	}
	return out
}

// tells reports whether a check of one kind of processes says what that of all does not: it fails, the others do not
// compute less instead, and the check of all does not fail, nor warns because of a trade.
func (q *question) tells(status gates.Status, all []*question, of []gates.Status) bool {
	if q.offset || status != gates.Failed {
		return false
	}
	for i, o := range all {
		if o.now == q.now && o.change.Figure == q.change.Figure && o.check.Part == "" {
			return of[i] != gates.Failed && of[i] != gates.Warned
		}
	}
	return false
}

// traded is what a check of CPU time comes to, given all questions and their statuses. More CPU time for more speed
// is a trade, as with more threads: it warns.
func traded(q *question, status gates.Status, why string, all []*question) (gates.Status, string) {
	if status != gates.Failed || q.change.Figure.Name != figure.TokenCPU {
		return status, why
	}
	faster := slices.ContainsFunc(all, func(o *question) bool {
		return o.now == q.now && o.change.Figure.Name == figure.DecodeTPS && o.compared.Changed &&
			o.compared.Percent != nil && *o.compared.Percent > 0
	})
	if faster {
		return gates.Warned, why + "; but decode is significantly faster"
	}
	return status, why
}

// cpuAlone makes checks of CPU time inconclusive that passed where no time or rate of the cell was checked.
func (j *judge) cpuAlone() {
	for i := range j.out.Checks {
		c := &j.out.Checks[i]
		if !figure.OfCPU(c.Figure) || c.Status != gates.Passed && c.Status != gates.Warned || j.timed(c.Cell) {
			continue
		}
		c.Status = gates.Inconclusive
		c.Why += "; CPU time alone passes no gate, because a wait costs none: check decode_tps, too"
	}
}

// timed reports whether a check is about a time or a rate of a cell.
func (j *judge) timed(cell string) bool {
	return slices.ContainsFunc(j.out.Checks, func(c gates.Check) bool {
		row := figure.Of(c.Figure)
		return c.Cell == cell && row != nil && !figure.OfCPU(row.Name) &&
			slices.Contains([]string{"ms", "tokens/s", "requests/s"}, row.Unit)
	})
}
