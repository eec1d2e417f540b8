package answer

import (
	"fmt"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/parity"
	"llmparity/compare/ship"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
)

// forms is the table of forms that the answer is about; nil: there is none, or several.
func (r view) forms() *ship.Table {
	if len(r.Forms) != 1 {
		return nil
	}
	return r.Forms[0]
}

// formsTitle says how much smaller the form to ship is than the reference form, and what it costs.
func (r view) formsTitle() string {
	t := r.forms()
	if t == nil {
		return ""
	}
	of := t.Forms[t.Reference].Name
	c := &t.Choice
	switch {
	case c.By == ship.OnlyQuality:
		return fmt.Sprintf(explain.ShipTitleNone, of, toleranceOf(t))
	case c.Form < 0 && c.Why == ship.Undecided:
		return formTitle(t, c.Undecided[0])
	case c.Form < 0 || c.Form == t.Reference:
		return ""
	}
	return formTitle(t, c.Form)
}

// formTitle compares a form with the reference form.
func formTitle(t *ship.Table, at int) string {
	form, of := &t.Forms[at], t.Forms[t.Reference].Name
	was, is := t.Forms[t.Reference].DownloadB, form.DownloadB
	smaller := fmt.Sprintf(explain.ShipSmaller, form.Name, smallerBy(was, is), of)
	switch change := form.Change; {
	case change == nil:
		return smaller + explain.ShipNoQuality
	case change.Seen() && change.Share > 0 && is >= was: // no price is paid for anything
		return smaller + ", " + fmt.Sprintf(explain.ShipAndCost, explain.Share(change.Share))
	default:
		return smaller + ", " + costWords(change)
	}
}

// smallerBy is how many times or by which share a download is smaller, or by which it is larger.
func smallerBy(of, is int64) string {
	switch {
	case is > of && of > 0:
		return fmt.Sprintf(explain.ShipLarger, explain.Share(float64(is)/float64(of)-1))
	case is <= 0 || is >= of:
		return explain.ShipNotSmaller
	case float64(of)/float64(is) < 1.5:
		return fmt.Sprintf(explain.ShipShare, explain.Share(1-float64(is)/float64(of)))
	}
	return fmt.Sprintf(explain.ShipTimes, strings.TrimSuffix(fmt.Sprintf("%.1f", float64(of)/float64(is)), ".0"))
}

// costWords say by how much perplexity rises, or that no change can be seen.
func costWords(c *ship.Change) string {
	switch {
	case c.Interval == nil:
		return fmt.Sprintf(explain.ShipCostUnsure, verdict.Signed(c.Share))
	case !c.Seen():
		most := max(c.Interval.Hi, -c.Interval.Lo)
		return fmt.Sprintf(explain.ShipNoCost, verdict.Whole(most))
	case c.Share < 0:
		return fmt.Sprintf(explain.ShipGain, explain.Share(-c.Share))
	}
	return fmt.Sprintf(explain.ShipCost, explain.Share(c.Share))
}

// changeWords are a change with its interval.
func changeWords(c *ship.Change) string {
	if c.Interval == nil {
		return verdict.FineSigned(c.Share)
	}
	return fmt.Sprintf(explain.ShipChange, verdict.FineSigned(c.Share), verdict.FineSigned(c.Interval.Lo),
		verdict.FineSigned(c.Interval.Hi))
}

func toleranceOf(t *ship.Table) string { return fmt.Sprintf("%.3g%%", 100*t.Tolerance) }

// shipCard recommends a form.
func (r view) shipCard() Card {
	t := r.forms()
	if t == nil {
		return Card{}
	}
	c := &t.Choice
	out := Card{Name: "What to ship", Headline: explain.ShipNone, Unknown: c.Form < 0}
	var text []string
	if c.Form < 0 {
		out.Text = r.noForm(t)
		return out
	}
	form, of := &t.Forms[c.Form], t.Forms[t.Reference].Name
	out.Headline = fmt.Sprintf(explain.ShipBy[string(c.By)], form.Name)
	switch {
	case c.By == ship.OnlyMemory || c.By == ship.OnlyDownload:
		lacks, do := r.unscored()
		out.Headline = fmt.Sprintf(explain.ShipOnly, out.Headline, lacks)
		text = append(text, do)
	case form.Change != nil:
		text = append(text, fmt.Sprintf(explain.ShipKeeps, toleranceOf(t), of, changeWords(form.Change)))
	}
	if memory := r.leastWords(t); memory != "" {
		text = append(text, memory)
	}
	if c.Next != nil {
		text = append(text, stepWords(t, c.Next))
	}
	if len(c.Undecided) > 0 {
		text = append(text, undecidedWords(t))
	}
	out.Text = strings.Join(text, " ")
	return out
}

// leastWords say whether the chosen form has the least memory.
func (r view) leastWords(t *ship.Table) string {
	format := explain.ShipPeaks
	switch t.Choice.By {
	case ship.DownloadQuality, ship.OnlyDownload:
		return explain.ShipSameMemory
	case ship.OnlyMemory:
		format = explain.ShipPeaksLeast
	case ship.OnlyQuality:
		if t.Least() != t.Choice.Form {
			return ""
		}
		format = explain.ShipPeaksLeast
	}
	cell := t.Forms[t.Choice.Form].Cells[t.By]
	if cell < 0 {
		return ""
	}
	return fmt.Sprintf(format, explain.Amount(peak(r.Cells[cell]).Center()), t.Engines[t.By].Name)
}

// noForm says why no form stands out.
func (r view) noForm(t *ship.Table) string {
	of := t.Forms[t.Reference].Name
	switch t.Choice.Why {
	case ship.TooFew:
		for i := range t.Forms {
			if c := t.Forms[i].Change; c != nil && c.Interval == nil {
				return fmt.Sprintf(explain.ShipTooFew, c.Windows, parity.MinWindows)
			}
		}
	case ship.Undecided:
		return undecidedWords(t)
	case ship.No:
		return fmt.Sprintf(explain.ShipSmallest, of)
	}
	lacks, do := r.unscored()
	return explain.ShipAlike + " " + explain.Capital(lacks) + ". " + do
}

func undecidedWords(t *ship.Table) string {
	var words []string
	for _, form := range t.Choice.Undecided {
		f := &t.Forms[form]
		words = append(words, f.Name+" "+changeWords(f.Change))
	}
	return fmt.Sprintf(explain.ShipUndecided, toleranceOf(t), explain.And(words, mostValues))
}

// unscored says that no quality is known, and how it is measured or why it is not.
func (r view) unscored() (lacks, do string) {
	lacks, do = explain.ShipUnscored, explain.ShipScore
	for _, c := range r.Cells {
		switch {
		case c.Quality.Guesses():
			return explain.ShipNotKnown, explain.ShipMeaningless
		case c.Quality != nil:
			lacks, do = explain.ShipNotKnown, explain.ShipPartly
		}
	}
	return lacks, do
}

// stepWords say what the next smaller form saves and costs.
func stepWords(t *ship.Table, s *ship.Step) string {
	name, of := t.Forms[s.Form].Name, t.Forms[t.Choice.Form].Name
	text := fmt.Sprintf(explain.ShipSavesMiB, name, explain.Amount(s.SavesMiB),
		explain.CI(s.Interval, explain.Amount), of)
	if s.SavesMiB <= 0 {
		text = fmt.Sprintf(explain.ShipSavesDownload, name, explain.Amount(float64(s.SavesB)/(1<<20)), of)
	}
	if s.SavesMiB < 0 {
		text += fmt.Sprintf(explain.ShipNeedsMiB, explain.Amount(-s.SavesMiB))
	}
	if s.Costs == nil {
		return text + "."
	}
	if s.Costs.Seen() && s.Costs.Share > 0 {
		return text + fmt.Sprintf(explain.ShipAndCosts, explain.Share(s.Costs.Share),
			explain.CI(s.Costs.Interval, explain.Share))
	}
	return text + ", " + costWords(s.Costs) + "."
}

// placeCard compares the browser with a native engine, for the form to ship.
func (r view) placeCard() Card {
	t := r.forms()
	if t == nil {
		return Card{}
	}
	browser, native, form := -1, -1, max(t.Choice.Form, 0)
	for column, e := range t.Engines {
		switch at := t.Forms[form].Cells[column]; {
		case at < 0:
		case e.Browser && browser < 0:
			browser = column
		case !e.Browser && native < 0:
			native = column
		}
	}
	if browser < 0 || native < 0 {
		return Card{}
	}
	a, b := r.Cells[t.Forms[form].Cells[native]], r.Cells[t.Forms[form].Cells[browser]]
	out := Card{Name: "Browser or native"}
	out.Headline, out.Unknown = r.moreInBrowser(t, a, b)
	peaks := fmt.Sprintf(explain.PlacePeaks, t.Forms[form].Name, valued(peak(b), "MiB"), b.Title(),
		valued(peak(a), "MiB"), a.Title())
	switch speeds := [2]evidence.Figure{b.Figure(figure.DecodeTPS), a.Figure(figure.DecodeTPS)}; {
	case t.Engines[browser].OnCPU:
		out.Text = fmt.Sprintf(explain.PlaceNeedsGPU, r.Runs[b.Run].Dir) + " " // a terminal has no room for more
	case speeds[0].Known() && speeds[1].Known():
		peaks += " " + fmt.Sprintf(explain.PlaceSpeeds, valued(speeds[0], "tokens/s"), valued(speeds[1], "tokens/s"))
	}
	out.Text += peaks
	return out
}

// moreInBrowser says how much more memory a form needs in the browser.
func (r view) moreInBrowser(t *ship.Table, native, browser *compare.Cell) (headline string, unknown bool) {
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		x, y := r.Cells[c.A], r.Cells[c.B]
		if x != native || y != browser {
			continue
		}
		v := r.Verdict(c, peak(x), peak(y), x.Title(), y.Title())
		where := explain.PlaceBrowser
		if v.Larger == 0 {
			where = explain.PlaceNative
		}
		switch {
		case v.Outcome == verdict.Different:
			return fmt.Sprintf(explain.PlaceMore, explain.Amount(v.Amount.Value), where), false
		case v.Outcome == verdict.NotComparable && v.AtLeast > 0:
			return fmt.Sprintf(explain.PlaceMoreAtLeast, explain.Amount(v.AtLeast), where), false
		}
		if most, known := v.Most(); known && v.Equal() {
			return fmt.Sprintf(explain.PlaceAlike, verdict.Whole(most)), false
		}
		break
	}
	return explain.PlaceUnknown, true
}
