package memory

import (
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/stats"
	"llmparity/internal/record"
)

// A total PSS divides what programs outside share, too: with another browser on the machine the file of this one weighs
// less, and RSS does not tell. Where launches differ in PSS by more than in RSS, beyond these, that is what happened.
const (
	sharingBytes = 8.0 // MiB
	sharingShare = 0.03
)

// sharingWarning says where programs outside have moved a cell's PSS.
func (c *Cell) sharingWarning() []record.Warning {
	rss := func(a *record.Attempt, p record.Phase) float64 {
		return lastTotal(a, p, RSSMethod(a), func(t record.TotalRow) float64 { return t.RSS })
	}
	var held, rssHeld, retained, rssRetained []float64
	for _, a := range c.Counted {
		if pss, r := lastPSS(a, record.Measure), rss(a, record.Measure); !math.IsNaN(pss + r) {
			held, rssHeld = append(held, pss), append(rssHeld, r)
		}
		// NaN where there was no process before the load.
		pss, r := lastPSS(a, record.Unload)-footprintOf(a).baseline,
			rss(a, record.Unload)-medianRSS(a.Launch(), record.Baseline)
		if !math.IsNaN(pss + r) {
			retained, rssRetained = append(retained, pss), append(rssRetained, r)
		}
	}
	if len(held) == 0 {
		return nil
	}
	tolerance := max(sharingBytes, sharingShare*stats.Median(held))
	what, pss, by := "at the end of the measurement", spread(held), spread(rssHeld)
	if len(retained) > 0 && spread(retained)-spread(rssRetained) > pss-by {
		what, pss, by = "retained", spread(retained), spread(rssRetained)
	}
	if pss-by <= tolerance {
		return nil
	}
	return []record.Warning{explain.Outside.With(what, explain.Short(pss), c.Several(), explain.Short(by))}
}

// An engine of one process shares with none of its own: what its total PSS is below its RSS, programs outside map too.
// Beside nothing but a system's usual programs a llama-server's is 2 to 4 MiB below, of libraries that they all have;
// beside another llama-server, whose own libraries are the same files, some 9; beside one with the same model, by half
// of that.
const (
	othersBytes = 8.0 // MiB
	othersShare = 0.1
)

// others is how much of an engine's memory, in MiB, programs outside share at its peak: the most over launches of one
// process in which PSS leaves out more of it than beyond those. 0: none, or it can't be told, because an engine's
// several processes share among themselves.
func others(counted []*record.Attempt) float64 {
	most := 0.0
	for _, a := range counted {
		peak := record.TotalRow{PSS: math.NaN()}
		for _, t := range a.Totals {
			if t.Method == record.MethodSmapsRollup && (math.IsNaN(peak.PSS) || t.PSS > peak.PSS) {
				peak = t
			}
		}
		if left := peak.RSS - peak.PSS; peak.Processes == 1 && left > max(othersBytes, othersShare*peak.RSS) {
			most = max(most, evidence.MaxKnown(left, peak.RSS-peak.USS))
		}
	}
	return most
}

// Others is how much of the memory, in MiB, programs outside share, where PSS leaves out much of it; 0: none.
func (c *Cell) Others() float64 { return c.others }

// OthersWords says what follows from that; empty where nothing does.
func (c *Cell) OthersWords() string {
	if c.others == 0 {
		return ""
	}
	return explain.Others.With(explain.Short(c.others)).Text
}

func spread(values []float64) float64 { return slices.Max(values) - slices.Min(values) }

func medianRSS(a *record.Attempt, p record.Phase) float64 {
	var out []float64
	for t := range readings(a, p) {
		if t.Method == RSSMethod(a) && !math.IsNaN(t.RSS) {
			out = append(out, t.RSS)
		}
	}
	return stats.Median(out)
}
