package timing

import (
	"maps"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// considerable is the least share of an engine's CPU time at which processes of a kind are looked at by themselves.
const considerable = 0.2

// Used is the CPU time of a token in the launches of a cell.
type Used struct {
	Whole    evidence.Figure
	ByRole   []CPU
	Attempts []*record.Attempt
}

// Added is what processes of a kind add to the CPU time of a token, launch by launch, as changes of all that the first
// side used.
//
// A busy machine makes all processes of a launch slower together, and more so in some launches than in others. Against
// the other processes of the same launch, what one kind adds varies little. That is right as far as the others compute
// as before: AsRead and Others tell.
type Added struct {
	Role    string
	Was, Is float64     // medians in ms
	Part    stats.Pairs // against the other processes
	AsRead  stats.Pairs // the same as it was read
	Others  stats.Pairs // what the other processes add
}

// Parts compares the kinds of processes that use much of the first side's CPU time, where others do, too.
func Parts(was, is Used) (out []Added) {
	before, after := was.Whole.ByRepetition(was.Attempts), is.Whole.ByRepetition(is.Attempts)
	both := slices.DeleteFunc(slices.Sorted(maps.Keys(before)), func(n int) bool { _, ok := after[n]; return !ok })
	for _, c := range is.ByRole {
		at := slices.IndexFunc(was.ByRole, func(o CPU) bool { return o.Role == c.Role })
		if at < 0 || c.PerToken == nil || was.ByRole[at].PerToken == nil {
			continue
		}
		share := *was.ByRole[at].PerToken / was.Whole.Center()
		if share < considerable || share > 1-considerable {
			continue
		}
		old, now := was.ByRole[at].token.ByRepetition(was.Attempts), c.token.ByRepetition(is.Attempts)
		var all, part, read, others []float64
		for _, n := range both {
			alike := (after[n] - now[n]) / (before[n] - old[n]) * old[n] // if it changed as the others did
			all, part = append(all, before[n]), append(part, before[n]+old[n]*(now[n]/alike-1))
			read, others = append(read, before[n]+now[n]-old[n]), append(others, after[n]-now[n]+old[n])
		}
		added := Added{c.Role, *was.ByRole[at].PerToken, *c.PerToken, stats.NewPairs(all, part),
			stats.NewPairs(all, read), stats.NewPairs(all, others)}
		if added.Part != nil && added.AsRead != nil && added.Others != nil {
			out = append(out, added)
		}
	}
	return out
}
