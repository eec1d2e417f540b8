package compare

import (
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// disturbed adds a warning to a difference that stolen time may explain.
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
	if text := MoreStolen(quick, slow, 0); text != "" {
		x.Warnings = append(x.Warnings, evidence.Warning{Where: slow.Label,
			Warning: record.Warning{Code: explain.StolenTime.Code, Text: text}})
	}
}

// stolenP is the p below which stolen time differs. It is large, because a difference must not be blamed on an engine.
const stolenP = 0.1

// MoreStolen says if a hypervisor gave more processor time to other guests during the launches of one cell than of
// another, by as many percent or more. Small amounts matter, because other guests also share caches and memory: on two
// cores, 0.5% stolen time came with 10% less speed.
func MoreStolen(than, of *Cell, by float64) string {
	a, b := stats.Median(than.stolen), stats.Median(of.stolen)
	if !(b > a && b-a >= by) { // unknown medians are not numbers
		return ""
	}
	p := stats.NewSides(than.stolen, of.stolen).Chance().P
	if p > stolenP {
		return ""
	}
	other := than.Label
	if other == of.Label {
		other = "the other run"
	}
	return explain.StolenTime.With(explain.Short(b), of.Label, explain.Short(a), other, p).Text
}

// Hiding is how much more must be stolen from one side, in percent, to hide a regression of the other.
const Hiding = 0.25
