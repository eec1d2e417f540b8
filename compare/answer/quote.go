package answer

import (
	"cmp"
	"fmt"
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

// subject is a set of questions that the answer has cards for.
type subject uint8

const (
	ofGrowth subject = 1 << iota
	ofMemory
	ofSpeed
	ofOutput
)

// objection is why the answers to some questions may not be quoted.
type objection struct {
	holds bool
	about subject
	why   string
}

// quote says which answers may be quoted, as browser against native where the result has both: those that no objection
// is about. Of each the first objection that holds is given.
func (r view) quote(a *Answer) Card {
	if slices.ContainsFunc(r.Cells, (*compare.Cell).Foreign) {
		return Card{}
	}
	objections := r.objections()
	var may []string
	var not evidence.Groups[string, string]
	for _, s := range []struct {
		of     subject
		name   string
		absent bool
	}{{ofGrowth, "growth", a.Growth.Headline == ""}, {ofMemory, "memory", false}, {ofSpeed, "speed", false},
		{ofOutput, "output", a.Output.Headline == "" || a.Output.Unknown}} {
		against := func(o objection) bool { return o.holds && o.about&s.of != 0 }
		if at := slices.IndexFunc(objections, against); s.absent {
			continue
		} else if at >= 0 {
			not.Add(objections[at].why, s.name)
		} else {
			may = append(may, s.name)
		}
	}
	ours, remark := "", ""
	its := func(c *compare.Cell) bool { return strings.HasPrefix(c.Part("model_library"), "ours") }
	if slices.ContainsFunc(r.Cells, its) {
		ours = "the model library was llmparity's, not MLC's"
		remark = "; say that " + ours
	}
	var words []string
	if adapter := r.softwareAdapter(); adapter != "" {
		as := "as a browser on a GPU"
		onCPU := func(c *compare.Cell) bool { return c.Device != nil && c.Device.Class == record.CPU }
		if slices.ContainsFunc(r.Cells, onCPU) {
			as = "as browser against native"
		}
		remark = " with this remark"
		if ours != "" {
			ours, remark = ", and "+ours, " with these remarks"
		}
		words = append(words, "Not "+as+": WebGPU ran on the CPU ("+adapter+")"+ours+".")
	}
	sentence := func(names []string, text string) {
		text = explain.And(names, 3) + text + "."
		words = append(words, strings.ToUpper(text[:1])+text[1:])
	}
	out := Card{Name: "Quote", Headline: "In part"}
	switch {
	case len(not.Keys) == 0 && len(r.Warnings) == 0 && remark == "":
		out.Headline, words = "Yes", []string{"Every cell has intervals, and no warning may change a conclusion."}
	case len(not.Keys) == 0:
		out.Headline = "Yes"
		if remark != "" {
			sentence(may, " may be quoted"+remark)
		}
		if len(r.Warnings) > 0 {
			words = append(words, "Read the warnings first.")
		}
	case len(may) > 0:
		sentence(may, " may be quoted"+remark)
	default:
		out.Headline = "No"
	}
	for why, names := range not.All() {
		switch {
		case why == onTheCPU:
			sentence(names, " may not")
		case len(may) == 0 && len(not.Keys) == 1:
			words = append(words, r.upper(why)+".")
		case len(may) == 0:
			sentence(names, " may not be quoted: "+why)
		default:
			sentence(names, " may not: "+why)
		}
	}
	out.Text = strings.Join(words, " ")
	return out
}

// onTheCPU is the objection that the answer begins with.
const onTheCPU = "WebGPU ran on the CPU"

// softwareAdapter names the adapter where WebGPU ran on the CPU; empty if it did not.
func (r view) softwareAdapter() string {
	for _, c := range r.Cells {
		if d := c.Device; d != nil && d.Class == record.SoftwareAdapter {
			return cmp.Or(d.Name, "a software adapter")
		}
	}
	return ""
}

// objections are all that may hold, the gravest first. That the devices differ is none where one is a software adapter.
func (r view) objections() []objection {
	adapter := r.softwareAdapter()
	refused, different, interrupted, prompts, texts := "", false, false, "", ""
	var launches compare.Launches
	least, noMemory, noRates, random := stats.MinRuns, "", "", ""
	for _, c := range r.Cells {
		if c.Refused != "" {
			continue
		}
		launches.Add(c.Launches)
		least = min(least, c.Launches.Counted)
		if f := c.Figure(figure.PeakPSS); f.N < stats.MinRuns && noMemory == "" {
			noMemory = fmt.Sprintf("the peak memory (PSS) is known for %d of %d %s of %s", f.N, c.Launches.Counted,
				c.Several(), r.cellTitle(c))
		}
		if f := speed(c); f.N < stats.MinRuns && noRates == "" {
			noRates = fmt.Sprintf("the speed is known for %d of %d %s of %s", f.N, c.Launches.Counted, c.Several(),
				r.cellTitle(c))
		}
		if c.Self.Known && !c.Self.Identical {
			random = cmp.Or(random, r.cellTitle(c)+" does not give the same output in every "+c.Repeated())
		}
	}
	shared := slices.ContainsFunc(r.Warnings, func(w evidence.Warning) bool { return w.Code == warning.MemoryShared })
	for _, run := range r.Runs {
		interrupted = interrupted || run.Status == record.Interrupted
	}
	for _, c := range r.Comparisons {
		if adapter == "" || !c.OfDevices() {
			refused = cmp.Or(refused, c.Forbids().Text)
		}
		different = different || len(c.Different) > 0
	}
	for _, p := range r.Parity {
		a, b := r.Cells[p.A], r.Cells[p.B]
		if p.SamePrompt != nil && !*p.SamePrompt || compare.PromptsDiffer(a, b) != "" {
			prompts = cmp.Or(prompts, fmt.Sprintf("%s and %s did not have the same prompt tokens", r.cellTitle(a),
				r.cellTitle(b)))
		}
		if p.State() == parity.Parting && (p.First == nil || !p.First.Rounding) {
			texts = cmp.Or(texts, fmt.Sprintf("the outputs of %s and %s differ, and rounding is not known to be "+
				"the reason", r.cellTitle(a), r.cellTitle(b)))
		}
	}
	wrong := slices.ContainsFunc(r.Cells, func(c *compare.Cell) bool { return c.Scores.Differs() }) ||
		slices.ContainsFunc(r.Parity, func(p parity.Parity) bool { return p.Scores.Differs() })
	unlike := "cells that are not alike are compared, because --allow-different asked for it"
	if !r.Statistics.AllowDifferent {
		unlike = "the engines have other weights of the model"
	}
	few := fmt.Sprintf("too few launches for an interval, which takes %d", stats.MinRuns)
	slope, noisySlope := r.slopeObjections()
	return append([]objection{
		{wrong, ofSpeed | ofOutput, "an engine's scores are further apart than rounding explains"},
		{adapter != "", ofSpeed, onTheCPU},
		{launches.Lost() != "", ofGrowth | ofMemory | ofSpeed, launches.Lost()},
		{interrupted, ofGrowth | ofMemory | ofSpeed, "the run has not ended"},
		{refused != "", ofMemory | ofSpeed, refused},
		{different, ofMemory | ofSpeed | ofOutput, unlike},
		{least < stats.MinRuns, ofMemory | ofSpeed, few},
		{slope, ofGrowth, "too few launches for an interval of the slope"},
		{prompts != "", ofMemory | ofSpeed | ofOutput, prompts},
		{random != "", ofOutput, random},
		{texts != "", ofSpeed, texts},
		{noMemory != "", ofMemory, noMemory},
		{shared, ofMemory, "other programs shared memory with an engine, so its peak reads low"},
		{noRates != "", ofSpeed, noRates},
		{noisySlope > 0, ofGrowth, tooWide(noisySlope)},
	}, append(r.unsettled(&memoryQuestion, ofMemory), r.unsettled(&speedQuestion, ofSpeed)...)...)
}

// slopeObjections reports whether a slope that the answer gives lacks an interval, and how wide one is that is
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

func tooWide(half float64) string {
	return "too noisy, the interval reaches " + explain.Share(half) + " from the median"
}

// unsettled objects to figures whose intervals are wide, and to differences that launches are too noisy to tell.
func (r view) unsettled(q *question, about subject) []objection {
	widest := 0.0
	for _, c := range r.Cells {
		half, _ := q.of(c).HalfWidth()
		widest = max(widest, half)
	}
	vary := slices.ContainsFunc(r.pairs(q), func(p pair) bool { return p.Outcome == verdict.TooNoisy })
	return []objection{{widest > evidence.Lopsided, about, tooWide(widest)},
		{vary, about, "launches vary too much to tell the difference"}}
}
