package ship

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"llmparity/compare/ratio"
	"llmparity/internal/stats"
)

// Choice is which form to ship.
type Choice struct {
	Form int  `json:"form"` // index into Forms; -1: none stands out
	By   By   `json:"by,omitempty"`
	Why  Kept `json:"why,omitempty"` // why none stands out
	// Next is the nearest smaller form; nil: there is none, or no form stands out.
	Next *Step `json:"next,omitempty"`
	// Undecided are smaller forms that may keep the quality, as indexes into Forms.
	Undecided []int `json:"undecided,omitempty"`
}

// By is what decided.
type By string

// What can decide.
const (
	MemoryQuality   By = "memory-and-quality"
	DownloadQuality By = "download-and-quality"
	OnlyQuality     By = "quality"  // all smaller forms lose quality
	OnlyMemory      By = "memory"   // no quality is known
	OnlyDownload    By = "download" // nor differs memory
)

// Scored reports whether quality had a part in it.
func (b By) Scored() bool { return b == MemoryQuality || b == DownloadQuality || b == OnlyQuality }

// Step is what a smaller form saves and costs, compared with the chosen one.
type Step struct {
	Form int `json:"form"`
	// SavesMiB is peak memory, with its interval; 0: no difference was found. Below 0 it needs more.
	SavesMiB float64         `json:"saves_mib,omitempty"`
	Interval *stats.Interval `json:"saves_interval,omitempty"`
	SavesB   int64           `json:"saves_download_bytes"`
	Costs    *Change         `json:"perplexity_change,omitempty"`
}

func (t *Table) choose() Choice {
	var keep, open []int
	var why Kept
	known := false
	for form := range t.Forms {
		quality := t.Forms[form].Quality
		known = known || quality != ""
		switch quality {
		case Yes:
			keep = append(keep, form)
		case Undecided, TooFew:
			open = append(open, form)
			why = cmp.Or(why, quality)
		case "":
			if form == t.Reference {
				keep = append(keep, form)
			}
		}
	}
	if !known {
		return t.alone()
	}
	if len(keep) == 1 {
		switch open = t.rivals(open); {
		case len(open) > 0:
			return Choice{Form: -1, Why: why, Undecided: open}
		case t.smallest(t.Reference):
			return Choice{Form: -1, Why: No} // no form is smaller
		}
		c := Choice{Form: t.Reference, By: OnlyQuality}
		c.Next = t.next(c.Form)
		return c
	}
	c := Choice{By: MemoryQuality}
	decided := false
	if c.Form, decided = t.least(keep); !decided {
		c.By = DownloadQuality
	}
	c.Next = t.next(c.Form)
	for _, form := range open {
		if t.Forms[form].DownloadB < t.Forms[c.Form].DownloadB {
			c.Undecided = append(c.Undecided, form)
		}
	}
	return c
}

// rivals are those forms that would be taken instead of the reference form, if they kept the quality: their download is
// smaller, or they need less memory, or neither is known.
func (t *Table) rivals(open []int) []int {
	differ := t.differ(t.Reference, open)
	return slices.DeleteFunc(open, func(form int) bool {
		r := differ[form]
		return t.Forms[form].DownloadB >= t.Forms[t.Reference].DownloadB && r != nil && r.Delta > 0
	})
}

// alone chooses without quality.
func (t *Table) alone() Choice {
	all := t.all()
	form, decided := t.least(all)
	if decided {
		return Choice{Form: form, By: OnlyMemory}
	}
	for _, other := range all {
		if other != form && t.Forms[other].DownloadB == t.Forms[form].DownloadB {
			return Choice{Form: -1}
		}
	}
	return Choice{Form: form, By: OnlyDownload}
}

// Least is the form with the least peak memory of all; -1: others do not differ from it.
func (t *Table) Least() int {
	form, decided := t.least(t.all())
	if !decided {
		return -1
	}
	return form
}

// all are all forms, as indexes.
func (t *Table) all() []int {
	out := make([]int, len(t.Forms))
	for form := range out {
		out[form] = form
	}
	return out
}

func (t *Table) smallest(form int) bool {
	return !slices.ContainsFunc(t.Forms, func(f Form) bool { return f.DownloadB < t.Forms[form].DownloadB })
}

// least is the form with the least peak memory. If others do not differ from it, it is the smallest download of them,
// and memory has not decided.
func (t *Table) least(forms []int) (form int, decided bool) {
	byDownload := func(a, b int) int { return cmp.Compare(t.Forms[a].DownloadB, t.Forms[b].DownloadB) }
	median := func(form int) float64 {
		if c := t.peak(form, t.By); c != nil {
			return c.Peak.Center()
		}
		return math.Inf(1)
	}
	form = slices.MinFunc(forms, func(a, b int) int { return cmp.Compare(median(a), median(b)) })
	if math.IsInf(median(form), 1) {
		return slices.MinFunc(forms, byDownload), false
	}
	alike := []int{form}
	more := t.differ(form, forms)
	for _, other := range forms {
		if other != form && more[other] == nil {
			alike = append(alike, other)
		}
	}
	return slices.MinFunc(alike, byDownload), len(alike) == 1
}

// differ has the forms whose peak memory differs from that of a form, with the ratios.
func (t *Table) differ(form int, others []int) map[int]*ratio.Ratio {
	out := map[int]*ratio.Ratio{}
	a := t.peak(form, t.By)
	var all []*ratio.Judgement
	for _, other := range others {
		b := t.peak(other, t.By)
		if other == form || a == nil || b == nil || a.Peak.Name != b.Peak.Name {
			continue
		}
		r := ratio.New(a.Peak, b.Peak, stats.NewSides(a.Launches, b.Launches))
		r.Test.Weight, r.Test.Same = 1, strconv.Itoa(other)
		out[other] = &r
		all = append(all, &r.Judgement)
	}
	ratio.Judge(all, stats.ByHolm)
	for other, r := range out {
		if !r.Significant || r.Percent == nil || math.Abs(*r.Percent) < 100*t.rules.MinEffect {
			delete(out, other)
		}
	}
	return out
}

// next is the nearest form that needs less memory, or else the nearest smaller download; nil: there is none.
func (t *Table) next(form int) *Step {
	var best *Step
	differ := t.differ(form, t.all())
	for other, r := range differ {
		if r.Delta < 0 && (best == nil || -r.Delta < best.SavesMiB) {
			best = &Step{Form: other, SavesMiB: -r.Delta}
			if i := r.DeltaInterval; i != nil {
				best.Interval = &stats.Interval{Lo: -i.Hi, Hi: -i.Lo, Confidence: i.Confidence}
			}
		}
	}
	if best == nil {
		for other := range t.Forms { // by download, the largest first
			if t.Forms[other].DownloadB < t.Forms[form].DownloadB {
				best = &Step{Form: other}
				if r := differ[other]; r != nil {
					best.SavesMiB = -r.Delta
				}
				break
			}
		}
	}
	if best != nil {
		best.SavesB = t.Forms[form].DownloadB - t.Forms[best.Form].DownloadB
		best.Costs = t.between(form, best.Form)
	}
	return best
}
