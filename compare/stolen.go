package compare

import (
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/compare/stats"
	"llmparity/internal/record"
)

// stolenP is the p under which stolen time is said to differ: who asks has a difference to explain, and blames an
// engine for it else.
const stolenP = 0.1

// stolenShares are of each launch the processors' time that a hypervisor gave to others meanwhile, in percent; nil
// where one does not tell.
func stolenShares(counted []*record.Attempt, cores int) []float64 {
	var out []float64
	for _, a := range counted {
		took := float64(a.EndNS-a.BeginNS) / 1e9 * float64(cores)
		if a.StolenS == nil || took <= 0 {
			return nil
		}
		out = append(out, 100**a.StolenS/took)
	}
	return out
}

// MoreStolen says by how much a hypervisor gave more of the processors to other machines while one cell's launches ran
// than while another's did; empty where it did not, or nobody told. It is told of as little as it is because neighbours
// who work share a core's units, caches and memory, too, of which nothing is counted: on a machine of two processors a
// tenth of the speed went with half a percent.
func MoreStolen(than, of *Cell) string {
	a, b := slices.Clone(than.stolen), slices.Clone(of.stolen)
	if len(a) == 0 || len(b) == 0 || stats.Median(b) <= stats.Median(a) {
		return ""
	}
	p := stats.NewSides(a, b).Chance().P
	if p > stolenP {
		return ""
	}
	return explain.StolenTime.With(explain.Short(stats.Median(b)), of.Label, explain.Short(stats.Median(a)),
		than.Label, p).Text
}

// hiding is by how many percent of the processors more must be stolen of one side to make up for a regression of some
// percent in the other.
const hiding = 0.25

// MuchMoreStolen is MoreStolen where it is enough to hide that the other side is slower.
func MuchMoreStolen(than, of *Cell) string {
	if len(than.stolen) == 0 || len(of.stolen) == 0 || stats.Median(of.stolen)-stats.Median(than.stolen) < hiding {
		return ""
	}
	return MoreStolen(than, of)
}

// disturbed warns of a difference that goes with stolen time.
func disturbed(x *ratio.Ratio, a, b *Cell) {
	f := a.Figure(x.Figure)
	if !x.Significant || x.Ratio == nil || !f.TimeOrRate() || a.Run == b.Run || a.Spec.Engine != b.Spec.Engine {
		return // launches of one run take turns
	}
	// Of the slower side more must have been stolen: the one whose times are longer, or whose rates are lower.
	slow, quick := a, b
	if longer := f.Unit == "ms" || f.Unit == "µs"; longer != (*x.Ratio > 1) {
		slow, quick = b, a
	}
	if text := MoreStolen(quick, slow); text != "" {
		x.Warnings = append(x.Warnings, evidence.Warning{Where: slow.Label,
			Warning: record.Warning{Code: explain.StolenTime.Code, Text: text}})
	}
}
