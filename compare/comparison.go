package compare

import (
	"slices"
	"strconv"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/parity"
	"llmparity/compare/ratio"
	"llmparity/compare/verdict"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
	"llmparity/internal/stats"
)

// Comparison compares two cells, or says why they cannot be compared.
type Comparison struct {
	A int `json:"a"` // indexes into Cells; A is the baseline
	B int `json:"b"`
	// Axes are those along which a cell is compared with its reference cell, A. Absent: engines or runs are compared.
	Axes    []string `json:"axes,omitempty"`
	Family  int      `json:"family"`            // index into Families
	Refused string   `json:"refused,omitempty"` // why there are no ratios
	// RefusedCode is the code of the reason against ratios.
	RefusedCode string   `json:"refused_code,omitempty"`
	Caveats     []string `json:"caveats"` // differences that do not refuse ratios
	// Different lists what refuses ratios without --allow-different.
	Different []string      `json:"different,omitempty"`
	Ratios    []ratio.Ratio `json:"ratios"`

	along   []*axis.Axis // of Axes
	reasons []Reason
	forbids verdict.Reason // why there are no ratios
	// amounts compares memory if ratios are refused and amounts may be compared
	amounts []ratio.Ratio
}

// judged returns all ratios and amounts of the comparison.
func (c *Comparison) judged() (out []*ratio.Ratio) {
	for _, list := range [][]ratio.Ratio{c.Ratios, c.amounts} {
		for k := range list {
			out = append(out, &list[k])
		}
	}
	return out
}

// compared lists the figures that have ratios, for single or concurrent requests.
func compared(together bool) []string {
	return figure.Names(figure.Rows(func(r *figure.Row) bool { return r.Ratio.In(together) }))
}

// Forbids is the first reason against ratios; without a code there is none.
func (c *Comparison) Forbids() verdict.Reason { return c.forbids }

// OfDevices reports whether the devices are the first reason against ratios.
func (c *Comparison) OfDevices() bool {
	return c.forbids.Code == explain.SoftwareGPU.Code || c.forbids.Code == explain.DevicesDiffer.Code
}

// party is a cell as package parity takes it.
func (r *Result) party(cell int) parity.Party {
	c := r.Cells[cell]
	s := parity.Party{Cell: cell, Label: c.Label, Temperature: c.Spec.Temperature, Counted: c.counted, Scored: c.scored,
		TextOf: "a cell that is not here", NoTokenIDs: c.Spec.NoTokenIDs, Unverified: c.unverified(), Self: c.Self,
		Arithmetic: c.arithmetic(), Checked: c.checked, Anchor: c.anchor, Values: c.Spec.Model.Values(),
		Rounded: c.Weights() == record.OtherValues}
	// To float16, weights are rounded as activations are, which tolerances cover.
	s.Requantised = s.Rounded && !(c.Says("weights_dtype") == "f16" && c.Says("activations_dtype") == "f16")
	if c.ModelLibrary().ByMLC() {
		s.Chunk, _ = strconv.Atoi(c.Says("prefill_chunk")) // 0 if it is not reported
	}
	its := func(o *Cell) bool { return c.scored != nil && o.Run == c.Run && o.Spec.ID == c.scored.Reference }
	if at := slices.IndexFunc(r.Cells, its); at >= 0 {
		s.TextOf = r.Cells[at].Label
	}
	return s
}

// arithmetic is what the engine computes in, by its score check or else by its reports.
func (c *Cell) arithmetic() []rounding.Arithmetic {
	if c.checked != nil {
		return c.checked.Arithmetic
	}
	return rounding.Of(c.Engine, c.Device, c.Spec.Model)
}

// fill adds the ratios of all figures that both cells have.
func (c *Comparison) fill(a, b *Cell) {
	for _, name := range comparedOf(a, b) {
		if Unlike(name, a, b).Code != "" {
			continue
		}
		fa, fb := a.Figure(name), b.Figure(name)
		if !fa.Known() || !fb.Known() {
			continue
		}
		s := stats.NewSides(fa.PerLaunch(a.counted), fb.PerLaunch(b.counted))
		r := ratio.New(fa, fb, s)
		r.Headline = figure.New(name).Headline.In(a.Load != nil)
		r.Test.Weight, r.Test.Same = stats.Weight(r.Headline, r.Test.Least), stats.OrderOf(s)
		r.Note, r.Different = noteOn(name, a, b), strings.Join(c.Different, "; ")
		for _, c := range []*Cell{a, b} {
			for _, w := range c.Figure(name).Warnings {
				r.Warnings = append(r.Warnings, evidence.Warning{Warning: w, Where: c.Label})
			}
		}
		c.Ratios = append(c.Ratios, r)
	}
}

// movers are differences of two cells, the figures that they affect, and whether they forbid comparing these figures.
var movers = []struct {
	what    figure.Moves
	differ  func(a, b *Cell) []Reason
	forbids bool
}{{figure.Sharing, memoryShared, true}, {figure.Cache, cachesDiffer, true}, {figure.Load, loadsDiffer, true},
	{figure.Length, lengthsDiffer, false}, {figure.Sharing, kvDiffers, false}, {figure.Pieces, piecesDiffer, false}}

// moved lists the differences of two cells that affect a figure: those that forbid comparing it, or the others.
func moved(name string, a, b *Cell, forbids bool) []Reason {
	var out []Reason
	row := figure.Of(name)
	for _, m := range movers {
		if row != nil && m.forbids == forbids && row.Moves&m.what != 0 {
			out = append(out, m.differ(a, b)...)
		}
	}
	return out
}

// noteOn lists the differences of two cells that affect a figure and allow comparing it.
func noteOn(name string, a, b *Cell) string {
	var texts []string
	for _, d := range moved(name, a, b, false) {
		texts = append(texts, d.Text)
	}
	return strings.Join(texts, "; ")
}

// Unlike says why a figure cannot be compared, because it means another thing on each side; without a code it can.
func Unlike(name string, a, b *Cell) verdict.Reason {
	whole := func(c *Cell) bool { return c.Figure(figure.Baseline).Lacks == evidence.NoProcess }
	if name == figure.Increase && whole(a) != whole(b) {
		return verdict.ReasonOf(explain.BaselinesDiffer)
	}
	if all := moved(name, a, b, true); len(all) > 0 {
		return all[0].bare
	}
	return verdict.Reason{}
}

// comparedOf lists the figures of two cells that have ratios. Imported rows have memory only.
func comparedOf(a, b *Cell) []string {
	if a.Foreign() || b.Foreign() {
		return []string{figure.PeakRSS, figure.PeakHeap}
	}
	if a.Load != nil && b.Load != nil {
		names := compared(true)
		if t := tail(a, b); t != "" {
			names = append(names, t)
		}
		return names
	}
	return compared(false)
}

// pairForeign compares imported rows with all other cells that have the same figures, with --allow-different only. Each
// ratio is marked, because model, prompt and device of the rows are unknown.
func (r *Result) pairForeign() {
	if !r.Statistics.AllowDifferent {
		return
	}
	for i := range r.Cells {
		for j := i + 1; j < len(r.Cells); j++ {
			a, b := r.Cells[i], r.Cells[j]
			if !a.Foreign() && !b.Foreign() {
				continue
			}
			c := Comparison{A: i, B: j, Caveats: []string{}, Ratios: []ratio.Ratio{}}
			for _, x := range []*Cell{a, b} {
				if x.Foreign() {
					c.add(reason(Marks, explain.ForeignUnknown, x.Label))
				}
			}
			c.fill(a, b)
			if len(c.Ratios) > 0 {
				r.Comparisons = append(r.Comparisons, c)
			}
		}
	}
}

// tail is the highest percentile above the median of the time to first token that both cells have; empty: none.
func tail(a, b *Cell) string {
	for _, share := range slices.Backward(figure.Quantiles()[1:]) {
		if name := figure.Percentile(figure.OfTTFT, share); a.Figure(name).Known() && b.Figure(name).Known() {
			return name
		}
	}
	return ""
}
