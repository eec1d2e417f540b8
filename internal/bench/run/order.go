package run

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"llmparity/internal/bench/plan"
)

// launchesOf returns the largest number of attempts of a setup.
func launchesOf(s *plan.Setup) int { return len(turns(s, seriesOf(s))) }

// seriesOf are the cells of a setup, as far as the plan alone defines them.
func seriesOf(s *plan.Setup) (out []*series) {
	for _, c := range s.Cells {
		out = append(out, &series{Cell: c})
	}
	return out
}

// turns puts a setup's attempts in order. Interleaved: cells alternate, so that a machine that slows down affects all
// engines. Shuffled: each round has its own order, from the seed and the setup's number. Grouped: all repetitions of a
// cell, then the next. Reused sessions always run one after another, because an idle session would share pages with the
// next and lower its PSS.
//
// If cells share a launch, only the first cell of each engine has warm-up launches.
func turns(s *plan.Setup, all []*series) []turn {
	p := s.Plan
	var out []turn
	random := rand.New(rand.NewPCG(cmp.Or(p.OrderSeed, p.Seed), uint64(s.ID)))
	shuffle := func(cells []*series) []*series {
		cells = slices.Clone(cells)
		if p.Order == plan.Shuffled {
			random.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
		}
		return cells
	}
	for _, group := range groups(p, shuffle, all) {
		warm := group
		if p.Isolation == plan.Shared {
			warm = group[:1]
		}
		for range p.Warmup.Launches {
			for _, c := range warm {
				out = append(out, turn{series: c, warmup: true})
			}
		}
		alternating := len(group)
		if p.Order == plan.Grouped {
			alternating = 1
		}
		for cells := range slices.Chunk(group, max(alternating, 1)) {
			for round := range p.MostRepetitions() {
				for _, c := range shuffle(cells) {
					out = append(out, turn{series: c, repetition: round + 1})
				}
			}
		}
	}
	return out
}

// groups returns the groups of cells that alternate.
func groups(p plan.Plan, shuffle func([]*series) []*series, all []*series) [][]*series {
	switch {
	case p.Isolation == plan.Shared:
		return byEngine(shuffle(all))
	case p.Isolation == plan.Reused, p.Order == plan.Grouped:
		return slices.Collect(slices.Chunk(shuffle(all), 1))
	case len(all) == 0:
		return nil
	}
	return [][]*series{all}
}

// byEngine groups the cells that share a launch, in the order of each engine's first.
func byEngine(all []*series) [][]*series {
	var out [][]*series
	for _, c := range all {
		at := slices.IndexFunc(out, func(group []*series) bool { return group[0].Engine == c.Engine })
		if at < 0 {
			at, out = len(out), append(out, nil)
		}
		out[at] = append(out[at], c)
	}
	return out
}
