package answer

import (
	"cmp"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/growth"
	"llmparity/compare/parity"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
	"llmparity/internal/warning"
)

// subject is a set of the answer's questions.
type subject uint8

const (
	ofGrowth subject = 1 << iota
	ofMemory
	ofSpeed
	ofOutput
	ofCost
)

// objection is a reason against quoting the answers to some questions.
type objection struct {
	about subject
	verdict.Reason
}

// objections are reasons against quoting answers, one of each code.
type objections []objection

func (o *objections) add(about subject, of explain.Reason, args ...any) {
	if slices.ContainsFunc(*o, func(other objection) bool { return other.Code == of.Code && other.about == about }) {
		return
	}
	*o = append(*o, objection{about, verdict.ReasonOf(of, args...)})
}

// quote says which answers may be quoted: those without an objection. For the others it gives the first objection. If
// the result has a browser and a native engine, it is about quoting them against each other.
func (r view) quote(a *Answer) Card {
	if slices.ContainsFunc(r.Cells, (*compare.Cell).Foreign) {
		return Card{}
	}
	objections := r.objections()
	var may []string
	var not evidence.Groups[verdict.Reason, string]
	for _, s := range []struct {
		of     subject
		name   string
		absent bool
	}{{ofGrowth, "growth", a.Growth.Headline == ""}, {ofMemory, "memory", false}, {ofSpeed, r.speedOf(a), false},
		{ofCost, "the browser's cost", a.Cost.Headline == ""},
		{ofOutput, "output", a.Output.Headline == "" || a.Output.Unknown}} {
		against := func(o objection) bool { return o.about&s.of != 0 }
		if at := slices.IndexFunc(objections, against); s.absent {
			continue
		} else if at >= 0 {
			not.Add(objections[at].Reason, s.name)
		} else {
			may = append(may, s.name)
		}
	}
	ours, remark := "", ""
	for _, c := range r.Cells {
		if l := c.ModelLibrary(); l.Unusual() {
			ours = "the model library was " + l.Maker + "'s, not " + l.Usual + "'s"
			remark = "; say that " + ours
		}
	}
	var words, limits []string
	if adapter := r.softwareAdapter(); adapter != "" {
		as := "as a browser on a GPU"
		onCPU := func(c *compare.Cell) bool { return c.Device != nil && c.Device.Class == record.CPU }
		switch {
		case a.Cost.Headline != "":
			as = explain.And(r.emulated(), 2) + " " + as
		case slices.ContainsFunc(r.Cells, onCPU):
			as = "as browser against native"
		}
		remark = " with this remark"
		if ours != "" {
			ours, remark = ", and "+ours, " with these remarks"
		}
		limits = []string{"not " + as}
		words = append(words, "Not "+as+": WebGPU ran on the CPU ("+adapter+")"+ours+".")
	}
	out := Card{Name: "Quote", Headline: "No"}
	switch {
	case len(not.Keys) == 0 && len(r.Warnings) == 0 && remark == "":
		out.Headline, words = "Yes", []string{"Every cell has intervals, and no warning may change a conclusion."}
	case len(not.Keys) == 0:
		out.Headline = "Yes"
	case len(may) > 0:
		out.Headline = explain.Capital(explain.And(may, 3)) + " only"
		first, brief := refusals(&not)
		words, out.Line = append(first, words...), explain.Capital(strings.Join(append(brief, limits...), ", "))+"."
	}
	if len(may) > 0 && remark != "" {
		words = append(words, explain.Capital(explain.And(may, 3))+" may be quoted"+remark+".")
	}
	if len(not.Keys) == 0 && len(r.Warnings) > 0 {
		words = append(words, "Read the warnings first.")
	}
	for why, names := range not.All() {
		switch {
		case len(may) > 0: // said first
		case why.Code == explain.OnTheCPU.Code:
			words = append(words, explain.Capital(explain.And(names, 3))+" may not.")
		case len(not.Keys) == 1:
			words = append(words, why.Sentence+".")
		default:
			words = append(words, explain.Capital(explain.And(names, 3))+" may not be quoted: "+why.Text+".")
		}
	}
	out.Text = strings.Join(words, " ")
	return out
}

// emulated are the engines whose WebGPU ran on the CPU.
func (r view) emulated() []string {
	return r.Distinct(func(c *compare.Cell) string {
		if c.Device != nil && c.Device.Class == record.SoftwareAdapter {
			return c.Title()
		}
		return ""
	})
}

// speedOf names the speeds that are quoted or not: beside the browser's cost, those of other engines.
func (r view) speedOf(a *Answer) string {
	if others := r.emulated(); a.Cost.Headline != "" && len(others) > 0 {
		return explain.And(others, 2) + "'s speed"
	}
	return "speed"
}

// refusals say which answers may not be quoted, with the reason of each, and in few words.
func refusals(not *evidence.Groups[verdict.Reason, string]) (sentences, short []string) {
	for why, names := range not.All() {
		text := strings.Join(names, " or ")
		brief, _, _ := strings.Cut(why.Text, ",")
		reason := ": " + why.Text
		if why.Code == explain.OnTheCPU.Code { // the sentence about the adapter follows
			reason, brief = "", "WebGPU ran on the CPU"
		}
		sentences = append(sentences, "Not "+text+reason+".")
		short = append(short, "not "+text+" ("+brief+")")
	}
	return sentences, short
}

// softwareAdapter is the adapter's name if WebGPU ran on the CPU; empty if it did not.
func (r view) softwareAdapter() string {
	for _, c := range r.Cells {
		if d := c.Device; d != nil && d.Class == record.SoftwareAdapter {
			return cmp.Or(d.Name, "a software adapter")
		}
	}
	return ""
}

// objections are all that apply, the most serious first.
func (r view) objections() objections {
	var out objections
	if slices.ContainsFunc(r.Cells, func(c *compare.Cell) bool { return c.Scores.Differs() }) ||
		slices.ContainsFunc(r.Parity, func(p parity.Parity) bool { return p.Scores.Differs() }) {
		out.add(ofSpeed|ofCost|ofOutput, explain.ScoresRefuted)
	}
	adapter := r.softwareAdapter()
	if adapter != "" {
		out.add(ofSpeed, explain.OnTheCPU)
	}
	var launches evidence.Counts
	least := stats.MinRuns
	for _, c := range r.Cells {
		if c.Refused == "" {
			launches.Add(c.Launches)
			least = min(least, c.Launches.Counted)
		}
	}
	if lost := launches.Lost(); lost != "" {
		out.add(ofGrowth|ofMemory|ofSpeed|ofCost, explain.LaunchesLost, lost)
	}
	if slices.ContainsFunc(r.Runs, func(run compare.Run) bool { return run.Status == record.Interrupted }) {
		out.add(ofGrowth|ofMemory|ofSpeed|ofCost, explain.Unfinished)
	}
	r.addForbidden(&out, adapter)
	if least < stats.MinRuns {
		out.add(ofMemory|ofSpeed, explain.FewLaunches, stats.MinRuns)
	}
	few, widest := r.slopeObjections()
	if few {
		out.add(ofGrowth, explain.FewForSlope)
	}
	r.addOutputs(&out)
	r.addUnknown(&out)
	if widest > 0 {
		out.add(ofGrowth, explain.WideIntervals, explain.Share(widest))
	}
	r.addCost(&out)
	r.addUnsettled(&out, &memoryQuestion, ofMemory)
	r.addUnsettled(&out, &speedQuestion, ofSpeed)
	return out
}

// addForbidden objects to pairs that may not be compared. It leaves out the devices if one is a software adapter.
func (r view) addForbidden(out *objections, adapter string) {
	unlike := explain.OtherWeights
	if r.Statistics.AllowDifferent {
		unlike = explain.OnRequest
	}
	first, different := verdict.Reason{}, false
	for _, c := range r.Comparisons {
		if adapter == "" || !c.OfDevices() {
			first = cmp.Or(first, c.Forbids())
		}
		different = different || len(c.Different) > 0
	}
	if first.Code != "" {
		*out = append(*out, objection{ofMemory | ofSpeed, first})
	}
	if different {
		out.add(ofMemory|ofSpeed|ofOutput, unlike)
	}
}

// addOutputs objects to different prompts, to cells that do not repeat their output, and to outputs that differ.
func (r view) addOutputs(out *objections) {
	for _, p := range r.Parity {
		a, b := r.Cells[p.A], r.Cells[p.B]
		if p.SamePrompt != nil && !*p.SamePrompt || compare.PromptsDiffer(a, b) != "" {
			out.add(ofMemory|ofSpeed|ofOutput, explain.PromptsDiffer, r.cellTitle(a), r.cellTitle(b))
		}
	}
	for _, c := range r.Cells {
		if c.Refused == "" && c.Self.Known && !c.Self.Identical {
			out.add(ofOutput, explain.Unrepeatable, r.cellTitle(c), c.Repeated())
		}
	}
	for _, p := range r.Parity {
		if p.State() == parity.Parting && (p.First == nil || !p.First.Rounding) {
			out.add(ofSpeed, explain.OutputsDiffer, r.cellTitle(r.Cells[p.A]), r.cellTitle(r.Cells[p.B]))
		}
	}
}

// addUnknown objects to figures of too few launches, and to peaks that read low.
func (r view) addUnknown(out *objections) {
	for _, c := range r.Cells {
		if f := c.Figure(figure.PeakPSS); c.Refused == "" && f.N < stats.MinRuns {
			out.add(ofMemory, explain.FewPeaks, f.N, c.Launches.Counted, c.Several(), r.cellTitle(c))
		}
	}
	if slices.ContainsFunc(r.Warnings, func(w evidence.Warning) bool { return w.Code == warning.MemoryShared }) {
		out.add(ofMemory, explain.PeakReadsLow)
	}
	for _, c := range r.Cells {
		if f := speed(c); c.Refused == "" && f.N < stats.MinRuns {
			out.add(ofSpeed, explain.FewSpeeds, f.N, c.Launches.Counted, c.Several(), r.cellTitle(c))
		}
	}
}

// slopeObjections reports whether a slope in the answer has no interval, and how wide the widest is, or 0 if none is
// too wide to quote.
func (r view) slopeObjections() (few bool, widest float64) {
	for i := range r.Sweeps {
		if rate, _ := quotedSlope(&r.Sweeps[i]); rate != nil && r.Sweeps[i].Axis == growth.AxisContext {
			half, _ := rate.HalfWidth()
			few, widest = few || rate.Interval == nil, max(widest, half)
		}
	}
	if widest <= evidence.Lopsided {
		widest = 0
	}
	return few, widest
}

// addCost objects to what the browser costs if its ratio has no interval, or a wide one.
func (r view) addCost(out *objections) {
	if len(r.Costs) != 1 || decodeOf(r.Costs[0]) == nil {
		return
	}
	share := decodeOf(r.Costs[0]).Whole.Inverse()
	i := share.Interval
	if i == nil {
		out.add(ofCost, explain.FewLaunches, stats.MinRuns)
		return
	}
	if half := max(i.Hi-share.Times, share.Times-i.Lo) / share.Times; half > evidence.Lopsided {
		out.add(ofCost, explain.WideIntervals, explain.Share(half))
	}
}

// addUnsettled objects to figures with wide intervals, and to differences that noise hides.
func (r view) addUnsettled(out *objections, q *question, about subject) {
	widest := 0.0
	for _, c := range r.Cells {
		half, _ := q.of(c).HalfWidth()
		widest = max(widest, half)
	}
	if widest > evidence.Lopsided {
		out.add(about, explain.WideIntervals, explain.Share(widest))
	}
	if slices.ContainsFunc(r.pairs(q), func(p pair) bool { return p.Outcome == verdict.TooNoisy }) {
		out.add(about, explain.Undecided)
	}
}
