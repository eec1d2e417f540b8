package compare

import (
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/compare/stats"
	"llmparity/internal/record"
)

// stolenP is the p below which stolen time differs. It is large, because a difference must not be blamed on an engine.
const stolenP = 0.1

// stolenShares is the processor time that a hypervisor gave to other guests, in percent of each launch; nil if unknown.
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

// MoreStolen says if a hypervisor gave more processor time to other guests during the launches of one cell than of
// another. Small amounts matter, because other guests also share caches and memory: on two cores, 0.5% stolen time came
// with 10% less speed.
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

// hiding is how much more must be stolen from one side, in percent, to hide a regression of the other.
const hiding = 0.25

// MuchMoreStolen is MoreStolen if it is enough to hide that the other side is slower.
func MuchMoreStolen(than, of *Cell) string {
	if len(than.stolen) == 0 || len(of.stolen) == 0 || stats.Median(of.stolen)-stats.Median(than.stolen) < hiding {
		return ""
	}
	return MoreStolen(than, of)
}

// disturbed warns of a difference that comes with stolen time.
func disturbed(x *ratio.Ratio, a, b *Cell) {
	f := a.Figure(x.Figure)
	if !x.Significant || x.Ratio == nil || !f.TimeOrRate() || a.Run == b.Run || a.Spec.Engine != b.Spec.Engine {
		return // launches of one run alternate
	}
	// More must have been stolen from the slower side: that of longer times, or of lower rates.
	slow, quick := a, b
	if longer := f.Unit == "ms" || f.Unit == "µs"; longer != (*x.Ratio > 1) {
		slow, quick = b, a
	}
	if text := MoreStolen(quick, slow); text != "" {
		x.Warnings = append(x.Warnings, evidence.Warning{Where: slow.Label,
			Warning: record.Warning{Code: explain.StolenTime.Code, Text: text}})
	}
}
