package memory

import (
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Total PSS falls when other programs, such as a second browser, map the same files; RSS does not change. If launches
// differ in PSS by more than in RSS, and by more than these, other programs are the cause.
const (
	sharingBytes = 8.0 // MiB
	sharingShare = 0.03
)

// sharingWarning says if other programs have changed a cell's PSS.
func (c *Footprint) sharingWarning() []record.Warning {
	rss := func(a *record.Attempt, p record.Phase) float64 { return lastTotal(a, p, RSSMethod(a), rssOf) }
	var held, rssHeld, retained, rssRetained []float64
	for _, a := range c.Counted {
		if pss, r := lastPSS(a, record.Measure), rss(a, record.Measure); !math.IsNaN(pss + r) {
			held, rssHeld = append(held, pss), append(rssHeld, r)
		}
		before := footprintOf(a) // NaN without a process before the load
		pss, r := lastPSS(a, record.Unload)-before.pss.baseline, rss(a, record.Unload)-before.rss.baseline
		if !math.IsNaN(pss + r) {
			retained, rssRetained = append(retained, pss), append(rssRetained, r)
		}
	}
	if len(held) == 0 {
		return nil
	}
	tolerance := max(sharingBytes, sharingShare*stats.Median(held))
	what, pss, by := "after the measured requests", spread(held), spread(rssHeld)
	if len(retained) > 0 && spread(retained)-spread(rssRetained) > pss-by {
		what, pss, by = "retained", spread(retained), spread(rssRetained)
	}
	if pss-by <= tolerance {
		return nil
	}
	return []record.Warning{explain.Outside.With(what, explain.Short(pss), c.Several(), explain.Short(by))}
}

// In an engine of one process, total PSS is below RSS only if other programs map the same files. A llama-server is 2 to
// 4 MiB below on a quiet system (common libraries), 9 MiB beside another llama-server, and half the model beside one
// with the same model.
const (
	othersBytes = 8.0 // MiB
	OthersShare = 0.1
)

// others is how much of an engine's memory other programs share at its peak, in MiB: the most over launches of one
// process in which PSS leaves out more than the limits. 0: none, or unknown.
func others(counted []*record.Attempt) float64 {
	most := 0.0
	for _, a := range counted {
		peak, ok := alone(a)
		if left := peak.RSS - peak.PSS; ok && left > max(othersBytes, OthersShare*peak.RSS) {
			most = max(most, evidence.MaxKnown(left, peak.RSS-peak.USS))
		}
	}
	return most
}

// alone is the peak of total PSS; false if the engine has several processes then, which share memory among themselves.
func alone(a *record.Attempt) (record.TotalRow, bool) {
	peak := record.TotalRow{PSS: math.NaN()}
	for _, t := range a.Totals {
		if t.Method == record.MethodSmapsRollup && (math.IsNaN(peak.PSS) || t.PSS > peak.PSS) {
			peak = t
		}
	}
	return peak, peak.Processes == 1
}

// OthersWords says what other programs share; empty if that is nothing.
func (c *Footprint) OthersWords() string {
	if c.Others > 0 {
		return explain.Others.With(explain.Short(c.Others)).Text
	}
	return c.ProgramWords()
}

// ProgramWords says which file other programs shared with one of several processes; empty if there is none. How much
// they shared is unknown.
func (c *Footprint) ProgramWords() string {
	for _, a := range c.Counted {
		if _, ok := alone(a); !ok {
			if i := slices.IndexFunc(a.Warnings, isShared); i >= 0 {
				return a.Warnings[i].Text
			}
		}
	}
	return ""
}

// Bounds is what the engine's memory was at least and at most at the peak of every launch: PSS leaves out what other
// programs share, and RSS counts in each process what they share. Unknown bounds are NaN.
func (c *Footprint) Bounds() (least, most float64) {
	least, most = math.NaN(), math.NaN()
	for _, a := range c.Counted {
		if peak, _ := alone(a); !math.IsNaN(peak.PSS) && !(least < peak.PSS) {
			least = peak.PSS
		}
		for _, t := range a.Totals {
			if t.Method == record.MethodSmapsRollup {
				most = evidence.MaxKnown(most, t.RSS)
			}
		}
	}
	return least, most
}

func isShared(w record.Warning) bool { return w.Code == record.ProgramShared }

// LeftOut is the largest share of RSS that PSS leaves out at the peak of a launch that warned of such a program.
// 0: unknown.
func (c *Footprint) LeftOut() float64 {
	most := 0.0
	for _, a := range c.Counted {
		if peak, ok := alone(a); ok && slices.ContainsFunc(a.Warnings, isShared) {
			most = evidence.MaxKnown(most, 1-peak.PSS/peak.RSS)
		}
	}
	return most
}

func spread(values []float64) float64 { return slices.Max(values) - slices.Min(values) }
