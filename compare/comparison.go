package compare

import (
	"slices"
	"strconv"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/compare/parity"
	"llmparity/compare/ratio"
	"llmparity/compare/verdict"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
	"llmparity/internal/stats"
)

// Comparison sets two cells against each other, or says why they can't be.
type Comparison struct {
	A       int      `json:"a"` // indexes into Cells; A is the baseline
	B       int      `json:"b"`
	Family  int      `json:"family"`            // index into Families
	Refused string   `json:"refused,omitempty"` // why there are no ratios
	Caveats []string `json:"caveats"`           // what differs although it may be compared
	// Different is what would have refused ratios, had they not been asked for.
	Different []string      `json:"different,omitempty"`
	Ratios    []ratio.Ratio `json:"ratios"`

	reasons []Reason
	forbids verdict.Reason // why there are no ratios
	// amounts are of memory, where only amounts may be compared
	amounts []ratio.Ratio
}

// judged are all that is judged of the comparison.
func (c *Comparison) judged() (out []*ratio.Ratio) {
	for _, list := range [][]ratio.Ratio{c.Ratios, c.amounts} {
		for k := range list {
			out = append(out, &list[k])
		}
	}
	return out
}

// compared lists the figures that ratios are given for, where requests come one at a time or together.
func compared(together bool) []string {
	return figure.Names(figure.Rows(func(r *figure.Row) bool { return r.Ratio.In(together) }))
}

// related tells whether two cells are about the same model and prompt, so that a reader will want them side by side.
// Over several runs an engine is set against itself in the first one, the baseline, or in another where the first has
// no such cell; and against others only where its own run has none of them.
func (r *Result) related(i, j int) bool {
	a, b := r.Cells[i], r.Cells[j]
	if a.Refused != "" || b.Refused != "" || !sameTask(a, b) || r.nearer(a, b) {
		return false
	}
	if a.Run == b.Run {
		return a.Spec.Engine != b.Spec.Engine
	}
	if a.Run > 0 && r.has(0, b) {
		return false
	}
	return a.Spec.Engine == b.Spec.Engine || !r.has(a.Run, b) && !r.has(b.Run, a)
}

func (r *Result) has(run int, like *Cell) bool {
	return slices.ContainsFunc(r.Cells, func(c *Cell) bool {
		return c.Run == run && c.Spec.Engine == like.Spec.Engine && sameTask(c, like)
	})
}

// sameTask tells whether two cells may be set side by side.
func sameTask(a, b *Cell) bool {
	unpaired := func(x *axis.Axis) bool { return x.Across == axis.Unpaired }
	return len(axis.Differ(&a.Spec, &b.Spec, unpaired)) == 0
}

// differences counts in what else two cells of one task differ. The number of the start settings, which only cells of
// one run share, stands for the dtype and the threads, which older records lack.
func differences(a, b *Cell) int {
	n := len(axis.Differ(&a.Spec, &b.Spec, func(x *axis.Axis) bool {
		return x.Across != axis.Unpaired && x.Name != axis.Engine
	}))
	if a.Says("kv_dtype") != b.Says("kv_dtype") {
		n++
	}
	if a.Run == b.Run && a.Spec.Setup != b.Spec.Setup {
		n++
	}
	return n
}

// sameOwn tells whether two cells of one engine have the same values of its own axes.
func sameOwn(a, b *Cell) bool {
	return len(axis.Differ(&a.Spec, &b.Spec, func(x *axis.Axis) bool { return x.Own })) == 0
}

// nearer tells whether one of two cells has a partner of the other's engine, in its run, that differs less: a plan with
// several output lengths compares cells of the same length. Values of an engine's own axes are each compared with other
// engines.
func (r *Result) nearer(a, b *Cell) bool {
	apart := differences(a, b)
	if apart == 0 {
		return false
	}
	instead := func(c, of *Cell) bool {
		return c.Run == of.Run && c.Spec.Engine == of.Spec.Engine && (a.Spec.Engine == b.Spec.Engine || sameOwn(c, of))
	}
	for _, c := range r.Cells {
		if instead(c, b) && sameTask(a, c) && differences(a, c) < apart ||
			instead(c, a) && sameTask(c, b) && differences(c, b) < apart {
			return true
		}
	}
	return false
}

// Sameness says how the weights of two engines compare, where one of them converted the model's file.
func Sameness(a, b *Cell) string {
	if a.FormOf(b) {
		return otherForm(a, b)
	}
	if m, n := a.Spec.Model, b.Spec.Model; m.SHA256 != n.SHA256 && m.Values() == n.Values() {
		return explain.SameForm
	}
	x, y := explain.Sameness(a.Policy("weights")), explain.Sameness(b.Policy("weights"))
	if a.Spec.Engine == b.Spec.Engine || x != "" && y != "" {
		return ""
	}
	return x + y
}

// otherForm says how the weights of two forms of a model compare that are not known to be the same.
func otherForm(a, b *Cell) string {
	x, y := a.Spec.Model.Differs, b.Spec.Model.Differs
	switch words := x + y; {
	case words == "" || x != "" && y != "": // each is compared with the first form
		return OtherForm
	case strings.HasPrefix(words, record.NotCompared):
		return "same model, weights " + words
	default:
		return OtherForm + ": " + words
	}
}

// OtherForm says that two forms of a model have other weights.
const OtherForm = "same model, " + explain.Other

// FormOf tells whether a plan names two files as forms of one model for two engines.
func (c *Cell) FormOf(of *Cell) bool { return axis.Forms(&c.Spec, &of.Spec) }

// unverified goes by what an engine warned of, and by models that only a server has.
func (c *Cell) unverified() bool {
	return axis.Unverified(&c.Spec.Model) || slices.ContainsFunc(c.all, func(a *record.Attempt) bool {
		return slices.ContainsFunc(a.Warnings, func(w record.Warning) bool { return w.Code == "weights-unverified" })
	})
}

func (r *Result) pair(i, j int) {
	a, b := r.Cells[i], r.Cells[j]
	c := Comparison{A: i, B: j, Caveats: []string{}, Ratios: []ratio.Ratio{}}
	if d := requestsDiffer(a, b); d != nil {
		c.add(d...)
		r.Comparisons = append(r.Comparisons, c)
		return
	}
	x, y := r.party(i), r.party(j)
	x.Rounded = x.Rounded || a.FormOf(b)
	p := parity.Of(x, y)
	if prompts := PromptsDiffer(a, b); prompts != "" && p.SamePrompt == nil {
		p.Tokenisation = "different: " + prompts
	}
	r.Parity = append(r.Parity, p)
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
	if same := Sameness(a, b); same != "" && !a.FormOf(b) {
		c.add(reason(Informs, explain.WeightsCompared, same))
	}
	// Cells that compute in other dtypes must not look alike, ratio or not.
	first, rest := settingsDiffer(a, b)
	c.add(first...)
	for _, d := range rest {
		c.Caveats = append(c.Caveats, d.Text)
	}
	r.Comparisons = append(r.Comparisons, c)
}

// add keeps reasons. The first that refuses ratios is the comparison's.
func (c *Comparison) add(reasons ...Reason) {
	c.reasons = append(c.reasons, reasons...)
	for _, d := range reasons {
		switch {
		case d.Effect == Refuses && c.Refused == "":
			c.Refused, c.forbids = d.Text, verdict.Reason{Code: d.Code, Text: d.bare}
		case d.Effect == Marks:
			c.Different = append(c.Different, d.Text)
		case d.Effect == Limits:
			c.Caveats = append(c.Caveats, d.Text)
		}
	}
}

// Forbids is the first reason against ratios; without a code there is none.
func (c *Comparison) Forbids() verdict.Reason { return c.forbids }

// OfDevices reports whether the devices are the first reason against ratios.
func (c *Comparison) OfDevices() bool {
	return c.forbids.Code == explain.SoftwareGPU.Code || c.forbids.Code == explain.DevicesDiffer.Code
}

// party is what parity takes of a cell.
func (r *Result) party(cell int) parity.Party {
	c := r.Cells[cell]
	s := parity.Party{Cell: cell, Label: c.Label, Temperature: c.Spec.Temperature, Counted: c.counted, Scored: c.scored,
		TextOf: "a cell that is not here", NoTokenIDs: c.Spec.NoTokenIDs, Unverified: c.unverified(), Self: c.Self,
		Arithmetic: c.arithmetic(), Checked: c.checked, Anchor: c.anchor, Values: c.Spec.Model.Values(),
		Rounded: strings.HasSuffix(c.Policy("weights"), explain.Other)}
	// To float16, weights are rounded as activations are, which tolerances cover.
	s.Requantised = s.Rounded && !(c.Says("weights_dtype") == "f16" && c.Says("activations_dtype") == "f16")
	if lib := c.Part("model_library"); strings.HasPrefix(lib, "MLC's") || strings.Contains(lib, "mlc kernels") {
		s.Chunk, _ = strconv.Atoi(c.Says("prefill_chunk")) // 0 if it is not reported
	}
	its := func(o *Cell) bool { return c.scored != nil && o.Run == c.Run && o.Spec.ID == c.scored.Reference }
	if at := slices.IndexFunc(r.Cells, its); at >= 0 {
		s.TextOf = r.Cells[at].Label
	}
	return s
}

// arithmetic is what the engine computes in: as its score check has it, else by its reports.
func (c *Cell) arithmetic() []rounding.Arithmetic {
	if c.checked != nil {
		return c.checked.Arithmetic
	}
	return rounding.Of(c.Engine, c.Device, c.Spec.Model)
}

// fill sets each figure that both have against the other's.
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

// movers are differences of two cells, what figures they move, and whether a figure that is moved can be compared.
var movers = []struct {
	what    figure.Moves
	differ  func(a, b *Cell) []Reason
	forbids bool
}{{figure.Sharing, memoryShared, true}, {figure.Cache, cachesDiffer, true}, {figure.Load, loadsDiffer, true},
	{figure.Length, lengthsDiffer, false}, {figure.Sharing, kvDiffers, false}, {figure.Pieces, piecesDiffer, false}}

// moved lists what moves a figure of one of two cells, so that it is not quite the other's, or forbids comparing them.
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

// noteOn says in which way a figure is not quite the same on both sides.
func noteOn(name string, a, b *Cell) string {
	var texts []string
	for _, d := range moved(name, a, b, false) {
		texts = append(texts, d.Text)
	}
	return strings.Join(texts, "; ")
}

// Unlike says why a figure is not the same thing on both sides; without a code it is.
func Unlike(name string, a, b *Cell) verdict.Reason {
	whole := func(c *Cell) bool { return c.Figure(figure.Baseline).Absent == memory.NoBaseline }
	if name == figure.Increase && whole(a) != whole(b) {
		return verdict.Reason{Code: explain.BaselinesDiffer.Code, Text: explain.BaselinesDiffer.Text}
	}
	if all := moved(name, a, b, true); len(all) > 0 {
		return verdict.Reason{Code: all[0].Code, Text: all[0].Text}
	}
	return verdict.Reason{}
}

// comparedOf lists the figures that ratios of two cells are given for: of rows that another program wrote, what they
// have.
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

// pairForeign sets rows that another program wrote against all other cells that have the like of theirs, where that is
// asked for. Each ratio is marked: nobody knows that they are about the same thing.
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

// tail is the highest percentile of times to the first token that both cells have; empty where there is none above the
// median.
func tail(a, b *Cell) string {
	for _, share := range slices.Backward(figure.Quantiles()[1:]) {
		if name := figure.Percentile(figure.OfTTFT, share); a.Figure(name).Known() && b.Figure(name).Known() {
			return name
		}
	}
	return ""
}
