package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/parity"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/warning"
)

// objection is why figures may not be quoted.
type objection struct {
	holds         bool
	memory, speed bool // which figures it is about
	why           string
}

// quote says which figures may be quoted, as browser against native where the result has both. Of each question the
// first objection that holds decides.
func (r *Result) quote() Card {
	any := func(is func(c *Cell) bool) bool {
		return slices.ContainsFunc(r.Cells, func(c Cell) bool { return is(&c) })
	}
	if any(func(c *Cell) bool { return c.Foreign() }) {
		return Card{}
	}
	adapter := r.softwareAdapter()
	objections := r.objections(adapter != "")
	first := func(of func(objection) bool) string {
		at := slices.IndexFunc(objections, func(o objection) bool { return o.holds && of(o) })
		if at < 0 {
			return ""
		}
		return objections[at].why + "."
	}
	memory := first(func(o objection) bool { return o.memory })
	speed := first(func(o objection) bool { return o.speed })
	if adapter != "" {
		memory = "WebGPU ran on the CPU (" + adapter + "), so this does not show a browser on a GPU. " +
			cmp.Or(memory, "Only the peak memory may be quoted, with this remark.")
		speed = memory
	}
	ours := any(func(c *Cell) bool { return strings.HasPrefix(c.Part("model_library"), "ours") })
	care := ""
	switch {
	case ours:
		care = "The model library was llmparity's, not MLC's: say so."
	case len(r.Warnings) > 0:
		care = "Read the warnings first."
	}
	var unsettled []string
	for _, q := range []*question{&memoryQuestion, &speedQuestion} {
		if slices.ContainsFunc(r.duels(q), func(d duel) bool { return d.outcome() == noisy }) {
			unsettled = append(unsettled, strings.ToLower(q.name))
		}
	}
	out := Card{Name: "Quote", Headline: "Yes", Text: "Every cell has intervals, and no warning may change a conclusion."}
	switch {
	case memory != "" && speed != "":
		out.Headline, out.Text = "No", memory
		if speed != memory {
			out.Text += " " + speed
		}
	case speed != "" && slices.Contains(unsettled, "memory"), memory != "" && slices.Contains(unsettled, "speed"):
		out.Headline = "No"
		out.Text = memory + speed + " Launches vary too much to tell the difference in " + explain.And(unsettled, 2) + "."
	case speed != "":
		out.Headline, out.Text = "Memory only", speed
	case memory != "":
		out.Headline, out.Text = "Speed only", memory
	case len(unsettled) > 0:
		out.Headline, out.Text = "Not the difference in "+explain.And(unsettled, 2), "Launches vary too much to tell."
	case care != "":
		out.Headline, out.Text = "With care", care
	}
	return out
}

// softwareAdapter names the adapter where WebGPU ran on the CPU; empty if it did not.
func (r *Result) softwareAdapter() string {
	for _, c := range r.each() {
		if d := c.Device; d != nil && d.Class == record.SoftwareAdapter {
			return cmp.Or(d.Name, "a software adapter")
		}
	}
	return ""
}

// objections are all that may hold, the gravest first. A software adapter is not among them, nor, where there is one,
// that the devices differ.
func (r *Result) objections(software bool) []objection {
	refused, different, interrupted, prompts, texts := "", false, false, "", ""
	lost, all, least, noMemory, noRates := 0, 0, stats.MinRuns, "", ""
	for _, c := range r.each() {
		if c.Refused != "" {
			continue
		}
		missing := c.Launches.Failed + c.Launches.Interrupted
		lost, all = lost+missing, all+missing+c.Launches.Counted
		least = min(least, c.Launches.Counted)
		if f := c.Figure(figure.PeakPSS); f.N < stats.MinRuns && noMemory == "" {
			noMemory = fmt.Sprintf("%s: the peak memory (PSS) is known for %d of %d %s", r.cellTitle(c), f.N,
				c.Launches.Counted, c.Several())
		}
		if f := speed(c); f.N < stats.MinRuns && noRates == "" {
			noRates = fmt.Sprintf("%s: the speed is known for %d of %d %s", r.cellTitle(c), f.N, c.Launches.Counted,
				c.Several())
		}
	}
	shared := slices.ContainsFunc(r.Warnings, func(w evidence.Warning) bool { return w.Code == warning.MemoryShared })
	for _, run := range r.Runs {
		interrupted = interrupted || run.Status == record.Interrupted
	}
	for _, c := range r.Comparisons {
		d := devicesDiffer(&r.Cells[c.A], &r.Cells[c.B], Refuses)
		if !software || d == nil || c.Refused != d.Text {
			refused = cmp.Or(refused, strings.TrimPrefix(c.Refused, notComparable))
		}
		different = different || len(c.Different) > 0
	}
	for _, p := range r.Parity {
		a, b := &r.Cells[p.A], &r.Cells[p.B]
		if p.SamePrompt != nil && !*p.SamePrompt || promptsDiffer(a, b) != "" {
			prompts = cmp.Or(prompts, fmt.Sprintf("%s and %s did not have the same prompt tokens", r.cellTitle(a),
				r.cellTitle(b)))
		}
		if p.State() == parity.Parting && (p.First == nil || !p.First.Rounding) {
			texts = cmp.Or(texts, fmt.Sprintf("the outputs of %s and %s differ, and rounding is not known to be "+
				"the reason", r.cellTitle(a), r.cellTitle(b)))
		}
	}
	unlike := "Cells that are not alike are compared, because --allow-different asked for it"
	if !r.Statistics.AllowDifferent {
		unlike = "The engines have other weights of the model"
	}
	return []objection{
		{lost > 0, true, true, fmt.Sprintf("%d of %d launches failed or %s interrupted", lost, all,
			explain.Plural(lost, "was", "were"))},
		{interrupted, true, true, "The run was interrupted"},
		{refused != "", true, true, r.upper(refused)},
		{different, true, true, unlike},
		{least < stats.MinRuns, true, true, fmt.Sprintf("Too few launches for an interval: it takes %d", stats.MinRuns)},
		{prompts != "", true, true, prompts},
		{texts != "", false, true, r.upper(texts)},
		{noMemory != "", true, false, noMemory},
		{shared, true, false, "Other programs shared memory with an engine, so PSS counts only a part of it"},
		{noRates != "", false, true, noRates},
		r.wide(&memoryQuestion, true, false),
		r.wide(&speedQuestion, false, true),
	}
}

// wide objects to figures whose intervals are wide.
func (r *Result) wide(q *question, memory, speed bool) objection {
	widest := 0.0
	for _, c := range r.each() {
		half, _ := q.of(c).HalfWidth()
		widest = max(widest, half)
	}
	return objection{widest > evidence.Lopsided, memory, speed, fmt.Sprintf("%s is too noisy: its interval reaches %s "+
		"from the median", q.name, explain.Share(widest))}
}
