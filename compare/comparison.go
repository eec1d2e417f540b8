package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/pairs"
	"llmparity/compare/parity"
	"llmparity/compare/ratio"
	"llmparity/compare/settings"
	"llmparity/compare/verdict"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
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

// pairUp compares cells in pairs. references has the requested values of each run's reference cell.
func (r *Result) pairUp(references []map[string]string) {
	for _, p := range pairs.Of(r.subjects(), references) {
		r.pair(p)
	}
	r.pairForeign()
}

// pair compares two cells.
func (r *Result) pair(p pairs.Pair) {
	a, b := r.Cells[p.A], r.Cells[p.B]
	c := Comparison{A: p.A, B: p.B, Caveats: []string{}, Ratios: []ratio.Ratio{}, along: p.Along}
	for _, x := range p.Along {
		c.Axes = append(c.Axes, x.Name)
	}
	if d := requestsDiffer(a, b); d != nil {
		c.add(d...)
		r.Comparisons = append(r.Comparisons, c)
		return
	}
	if !axis.OtherForm(&a.Spec, &b.Spec) { // other weights: outputs differ, and quality says by how much
		r.parity(p.A, p.B)
	}
	effect := Refuses
	if r.Statistics.AllowDifferent {
		effect = Marks
	}
	if c.add(unknown(a, b)...); c.Refused == "" {
		c.add(unlikeReasons(a, b, effect)...)
	}
	if c.Refused == "" {
		c.fill(a, b)
		c.add(caveats(a, b)...)
	}
	if same := Sameness(a, b); same.Code != "" && !a.FormOf(b) {
		c.add(reason(Informs, explain.WeightsCompared, same))
	}
	if p.Along != nil { // what differs is the question
		r.Comparisons = append(r.Comparisons, c)
		return
	}
	// Cells that compute in other dtypes must not look alike, ratio or not.
	first, rest := settingsDiffer(a, b)
	c.add(first...)
	for _, d := range rest {
		c.Caveats = append(c.Caveats, d.Text)
	}
	r.Comparisons = append(r.Comparisons, c)
}

// add adds reasons. The first one that refuses ratios becomes Refused.
func (c *Comparison) add(reasons ...Reason) {
	c.reasons = append(c.reasons, reasons...)
	for _, d := range reasons {
		switch {
		case d.Effect == Refuses && c.Refused == "":
			c.Refused, c.RefusedCode, c.forbids = d.Text, d.Code, d.bare
		case d.Effect == Marks:
			c.Different = append(c.Different, d.Text)
		case d.Effect == Limits:
			c.Caveats = append(c.Caveats, d.Text)
		}
	}
}

// parity compares the outputs of two cells.
func (r *Result) parity(i, j int) {
	i, j = min(i, j), max(i, j)
	a, b := r.Cells[i], r.Cells[j]
	x, y := r.party(i), r.party(j)
	x.Rounded = x.Rounded || a.FormOf(b)
	p := parity.Of(x, y)
	if prompts := PromptsDiffer(a, b); prompts != "" && p.SamePrompt == nil {
		p.Tokenisation = "different: " + prompts
	}
	r.Parity = append(r.Parity, p)
}

// PromptsDiffer returns the numbers of prompt tokens that both sides counted; empty: they are equal or unknown.
func PromptsDiffer(a, b *Cell) string {
	x, y := a.Figure(figure.Prompt), b.Figure(figure.Prompt)
	if !x.Known() || !y.Known() || x.Center() == y.Center() {
		return ""
	}
	return fmt.Sprintf("%s and %s tokens", x.Count(), y.Count())
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
	{figure.Shaders, shadersDiffer, true},
	{figure.Length, lengthsDiffer, false}, {figure.Sharing, kvDiffers, false}, {figure.Pieces, piecesDiffer, false}}

// lengthsDiffer returns a reason if one side generated more tokens: later tokens cost more.
func lengthsDiffer(a, b *Cell) []Reason {
	x, y := a.Figure(figure.Tokens), b.Figure(figure.Tokens)
	if !x.Known() || !y.Known() || x.Center() == y.Center() {
		return nil
	}
	return []Reason{reason(Limits, explain.LengthsDiffer, x.Count(), y.Count())}
}

// kvDiffers returns a reason if the KV caches have different dtypes.
func kvDiffers(a, b *Cell) []Reason {
	x, y := a.Says("kv_dtype"), b.Says("kv_dtype")
	if x == y || x == "" || y == "" {
		return nil
	}
	return []Reason{valuesDiffer(Limits, "kv_dtype", settings.Title("kv_dtype"), x, y)}
}

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
		return []string{figure.PeakRSS, figure.PeakHeap, figure.PeakWebGPU}
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

// Verdict is the conclusion about a figure that both cells of a comparison have: x of A and y of B. a and b name the
// sides. Without a ratio, amounts of memory decide if only the devices forbid one.
func (r *Result) Verdict(c *Comparison, x, y evidence.Figure, a, b string) verdict.Verdict {
	at := func(of []ratio.Ratio) int {
		return slices.IndexFunc(of, func(o ratio.Ratio) bool { return o.Figure == x.Name && o.Figure == y.Name })
	}
	if at := at(c.Ratios); at >= 0 {
		return verdict.Of(&c.Ratios[at], a, b, r.Statistics.MinEffect)
	}
	if at := at(c.amounts); at >= 0 {
		return verdict.OfAmounts(&c.amounts[at], a, b, r.Statistics.MinEffect)
	}
	p, q := r.Cells[c.A], r.Cells[c.B]
	v := verdict.Forbidden(x, y, a, b, cmp.Or(Unlike(x.Name, p, q), c.forbids))
	if x.Name != p.Points().Peak.Name {
		return v
	}
	v.Forbids = cmp.Or(v.Forbids, verdict.ReasonOf(explain.NoPSS))
	if shared := cmp.Or(p.footprint.ProgramWords(), q.footprint.ProgramWords()); shared != "" {
		v.Forbids = verdict.Reason{Code: explain.MemoryShared.Code, Text: shared, Sentence: explain.Capital(shared)}
		if more := leastMore(p, q); more != 0 {
			v.AtLeast, v.Larger = math.Abs(more), 0
			if more < 0 {
				v.Larger = 1
			}
		}
	}
	return v
}

// SameRequest reports whether the outputs of two cells could be the same.
func SameRequest(a, b *Cell) bool { return requestsDiffer(a, b) == nil }
