package run

import (
	"slices"

	"llmparity/internal/plan"
)

// turn is an attempt that is to be made.
type turn struct {
	*cell
	warmup     bool
	repetition int // 0 for a warm-up launch
}

// session names what a turn's launch is shared by; nil: it is its own.
func (t turn) session() any {
	switch {
	case t.warmup:
		return nil
	case t.Shared:
		return t.engine
	case t.Reused:
		return t.cell
	}
	return nil
}

// turns puts a setup's attempts in order: the cells in turn, repetition by repetition, so that a machine that slows down slows all
// engines. Where sessions are reused one comes after the other: what another's idle session holds would divide the pages
// that both share, and so be in PSS.
func turns(p plan.Plan, all []*cell) []turn {
	var out []turn
	for _, group := range groups(p, all) {
		warm := group
		if p.Isolation == plan.Shared {
			warm = group[:1] // one launch is to come
		}
		for range p.Warmup.Launches {
			for _, c := range warm {
				out = append(out, turn{cell: c, warmup: true})
			}
		}
		for round := range p.Repetitions {
			for _, c := range group {
				out = append(out, turn{cell: c, repetition: round + 1})
			}
		}
	}
	return out
}

// groups are the cells that take turns.
func groups(p plan.Plan, all []*cell) [][]*cell {
	switch p.Isolation {
	case plan.Reused:
		return slices.Collect(slices.Chunk(all, 1))
	case plan.Shared:
		var out [][]*cell
		for _, c := range all {
			i := slices.IndexFunc(out, func(g []*cell) bool { return g[0].engine == c.engine })
			if i < 0 {
				i, out = len(out), append(out, nil)
			}
			out[i] = append(out[i], c)
		}
		return out
	}
	return [][]*cell{all}
}
