package gate

import (
	"cmp"
	"fmt"
	"slices"

	"llmparity/compare"
	"llmparity/compare/parity"
	"llmparity/internal/gates"
)

// scores checks that scores are the same: those of each cell and the reference implementation, and those of two
// engines. Without a limit in the gate, rounding decides, and cells without a score check are omitted.
func (j *judge) scores() {
	section := j.gate.Scores
	s := gates.Scores{}
	if section != nil {
		s = *section
	}
	level, found := j.gate.LevelOf(s.Level), false
	one := func(cells []*compare.Cell, where string, c *parity.Check) {
		if c == nil || c.Absent != "" && section == nil {
			return
		}
		if !slices.ContainsFunc(cells, func(c *compare.Cell) bool { return within(s.Scope, c) }) {
			return
		}
		found = true
		j.scored(gates.Check{Name: "same scores as " + c.With, Kind: gates.KindScores, Cell: where}, level, s.Max, c)
	}
	for _, c := range j.now.Cells {
		one([]*compare.Cell{c}, c.Label, c.Scores)
	}
	for _, p := range j.now.Parity {
		a, b := j.now.Cells[p.A], j.now.Cells[p.B]
		one([]*compare.Cell{a, b}, a.Label+" and "+b.Label, p.Scores)
	}
	if !found && section != nil {
		j.add(gates.Check{Name: "same scores", Kind: gates.KindScores, Cell: "no cell"}, level, gates.Inconclusive,
			"the run has no score check")
	}
}

func (j *judge) scored(check gates.Check, level gates.Level, most float64, c *parity.Check) {
	if c.Absent != "" {
		j.add(check, level, gates.Inconclusive, c.Words())
		return
	}
	bound := cmp.Or(most, c.Nats)
	check.Measured, check.Unit, check.Max = &c.Max, "nats", &bound
	status, why := gates.Passed, c.Words()
	if c.Max > bound {
		status = gates.Failed
	}
	if most > 0 {
		why = fmt.Sprintf("scores are at most %s apart; the gate allows %s", num(c.Max), num(most))
	}
	j.add(check, level, status, why)
}
