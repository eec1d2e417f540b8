package compare

import (
	"fmt"
	"math"
	"slices"

	"llmparity/internal/record"
)

// A total PSS divides what programs outside share, too: with another browser on the machine the file of this one weighs less, and
// RSS does not tell. Where launches differ in PSS by more than in RSS, beyond these, that is what happened.
const (
	sharingBytes = 8.0 // MiB
	sharingShare = 0.03
)

// sharingWarnings says where programs outside have moved a cell's PSS.
func (c *Cell) sharingWarnings(counted []*record.Attempt) []Warning {
	rss := func(a *record.Attempt, p record.Phase) float64 {
		return lastTotal(a, p, rssMethod(a), func(t record.TotalRow) float64 { return t.RSS })
	}
	var held, rssHeld, retained, rssRetained []float64
	for _, a := range counted {
		if pss, r := lastPSS(a, record.Measure), rss(a, record.Measure); !math.IsNaN(pss + r) {
			held, rssHeld = append(held, pss), append(rssHeld, r)
		}
		// NaN where there was no process before the load.
		pss, r := lastPSS(a, record.Unload)-footprintOf(a).baseline, rss(a, record.Unload)-medianRSS(a.Launch(), record.Baseline)
		if !math.IsNaN(pss + r) {
			retained, rssRetained = append(retained, pss), append(rssRetained, r)
		}
	}
	if len(held) == 0 {
		return nil
	}
	tolerance := max(sharingBytes, sharingShare*median(held))
	what, pss, by := "at the end of the measurement", spread(held), spread(rssHeld)
	if len(retained) > 0 && spread(retained)-spread(rssRetained) > pss-by {
		what, pss, by = "retained", spread(retained), spread(rssRetained)
	}
	if pss-by <= tolerance {
		return nil
	}
	return []Warning{{record.Warning{Code: "shared-outside", Text: fmt.Sprintf("total PSS (%s) differs by %s MiB between %s, RSS by %s: "+
		"programs outside, such as another browser, shared files with some of them, and figures of PSS are off by as much",
		what, short(pss), c.severalRepeated(), short(by))}, c.Label}}
}

func spread(values []float64) float64 { return slices.Max(values) - slices.Min(values) }

func medianRSS(a *record.Attempt, p record.Phase) float64 {
	var out []float64
	for _, t := range readings(a, p) {
		if t.Method == rssMethod(a) && !math.IsNaN(t.RSS) {
			out = append(out, t.RSS)
		}
	}
	return median(out)
}
