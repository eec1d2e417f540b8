package compare

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/compare/parity"
	"llmparity/compare/ratio"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
)

func (r *Result) engines() []string {
	var out []string
	for _, c := range r.Cells {
		out = explain.AppendNew(out, c.Spec.Engine)
	}
	return out
}

// baselines lists the engines that have a baseline and those that can have none.
func (r *Result) baselines() (with, without []string) {
	for _, c := range r.Cells {
		switch f := c.Figure(figure.Baseline); {
		case f.Known():
			with = explain.AppendNew(with, c.Spec.Engine)
		case f.Absent == memory.NoBaseline:
			without = explain.AppendNew(without, c.Spec.Engine)
		}
	}
	return with, without
}

// isolated lists cells that stand in no comparison.
func (r *Result) isolated() []string {
	var out []string
	for i, c := range r.Cells {
		if c.Refused == "" && !c.Foreign() &&
			!slices.ContainsFunc(r.Comparisons, func(p Comparison) bool { return p.A == i || p.B == i }) {
			out = append(out, c.Label)
		}
	}
	return out
}

// verdict is up to three sentences: are the tokens the same, what does it cost, and how far to trust it.
func (r *Result) verdict() []string {
	if len(r.Cells) == 0 {
		return []string{"This run holds no cell: nothing was measured."}
	}
	out := []string{}
	label := func(cell int) string { return r.Cells[cell].Label }
	for _, s := range []string{parity.Words(r.Parity, label), r.costWords(), r.trustWords()} {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// costWords gives ratios where they are allowed, else the figures side by side.
func (r *Result) costWords() string {
	if words := r.ratioWords(); len(words) > 0 {
		return strings.ToUpper(words[0][:1]) + strings.Join(words, "; ")[1:] + "." // titles of ours: ASCII
	}
	var words []string
	for _, c := range r.Cells {
		peak, tps, did := c.Figure(figure.PeakPSS), c.Figure(figure.DecodeTPS), "decoded"
		if c.Load != nil {
			tps, did = c.Figure(figure.AggregateTPS), "gave all its requests together"
		}
		switch {
		case len(words) == 3:
		case peak.Known() && tps.Known():
			words = append(words,
				fmt.Sprintf("%s peaked at %s MiB and %s %s tokens/s", c.Label, explain.Short(peak.Center()), did,
					explain.Short(tps.Center())))
		case peak.Known():
			words = append(words, fmt.Sprintf("%s peaked at %s MiB", c.Label, explain.Short(peak.Center())))
		case tps.Known():
			words = append(words, fmt.Sprintf("%s %s %s tokens/s", c.Label, did, explain.Short(tps.Center())))
		}
	}
	if len(words) == 0 {
		return ""
	}
	end := "."
	if slices.ContainsFunc(r.Comparisons, func(c Comparison) bool { return c.Refused != "" }) {
		end = "; no ratio is drawn between them."
	}
	return strings.Join(words, "; ") + end
}

// ratioWords are what the statistics say of memory and speed: of runs where there are several, of the mean over cells
// where there is one. Of one pair it is said in full, of several in short.
func (r *Result) ratioWords() []string {
	for _, ofRuns := range []bool{true, false} {
		var pairs []pairWords
		for f, family := range r.Families {
			if family.Runs == ofRuns {
				pairs = append(pairs, r.pairsOf(f)...)
			}
		}
		if len(pairs) == 1 {
			return pairs[0].full
		}
		var words []string
		for i, p := range pairs {
			if i == pairsReported {
				words = append(words, fmt.Sprintf("of %d more pairs it is said below", len(pairs)-i))
				break
			}
			words = append(words, p.name+": "+strings.Join(p.short, ", "))
		}
		if len(words) > 0 {
			return words
		}
	}
	return nil
}

// pairsReported is how many pairs the verdict tells of.
const pairsReported = 10

// pairWords are what is said of two sides' headlines, in full and in short.
type pairWords struct {
	name        string
	full, short []string
}

// pairsOf are a family's means, a group each, and the comparisons that have ratios and no mean.
func (r *Result) pairsOf(f int) []pairWords {
	family := &r.Families[f]
	var out []pairWords
	of := map[string]int{}
	for i := range family.Means {
		m := &family.Means[i]
		if !m.Headline {
			continue
		}
		if _, ok := of[m.Group]; !ok {
			of[m.Group] = len(out)
			out = append(out, pairWords{name: family.A + " against " + family.B + " over " + fmt.Sprint(m.Cells) +
				" pairs of cells"})
		}
		p := &out[of[m.Group]]
		full, short := r.hidden(m, family)
		p.full, p.short = append(p.full, m.Verdict+full),
			append(p.short, ratio.Shortly(m.Title, m.Call, &m.Ratio)+short+ratio.NotAlike(m.Different))
	}
	if len(of) > 1 {
		for group, at := range of {
			out[at].name += " (" + group + ")"
		}
	}
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		if _, reported := of[c.group]; reported || c.Family != f {
			continue
		}
		p := pairWords{name: r.Cells[c.A].Label + " against " + r.Cells[c.B].Label}
		for _, x := range c.Ratios {
			if x.Headline {
				p.full, p.short = append(p.full, x.Verdict),
					append(p.short, ratio.Shortly(x.Title, x.Call, x.Ratio)+ratio.NotAlike(x.Different))
			}
		}
		if len(p.full) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// hidden says which pairs differ by themselves though their mean does not, or the other way round than it: of one
// engine that gives twice as much for one prompt and half as much for another, a mean says nothing at all.
func (r *Result) hidden(m *ratio.Mean, f *ratio.Family) (full, short string) {
	var ratios []float64
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		if c.Family != m.Family || c.group != m.Group {
			continue
		}
		for _, x := range c.Ratios {
			if x.Figure == m.Figure && x.Call == stats.Differs && x.Ratio != nil &&
				(m.Call != stats.Differs || (*x.Ratio > 1) != (m.Ratio > 1)) {
				ratios = append(ratios, *x.Ratio)
			}
		}
	}
	if len(ratios) == 0 {
		return "", ""
	}
	times := rangeOf(slices.Min(ratios), slices.Max(ratios)) + " times"
	return fmt.Sprintf(", but in %d of these pairs by themselves that of %s is %s that of %s", len(ratios), f.A, times,
			f.B),
		fmt.Sprintf(" (but %s in %d of them)", times, len(ratios))
}

// rangeOf writes a range, or the one number that it is.
func rangeOf(lo, hi float64) string {
	if explain.Short(lo) == explain.Short(hi) {
		return explain.Short(lo)
	}
	return explain.Short(lo) + " to " + explain.Short(hi)
}

func (r *Result) trustWords() string {
	var all Launches
	least := -1
	classes := []string{}
	reused := false
	one, many := "launch", "launches"
	refused, tooLarge := 0, 0
	for _, c := range r.Cells {
		if c.Refused != "" {
			refused++
			if c.Risk != nil && c.Risk.Refused {
				tooLarge++
			}
			continue
		}
		reused = reused || c.Repeated() != one
		all.Counted += c.Launches.Counted
		all.Failed += c.Launches.Failed
		all.Interrupted += c.Launches.Interrupted
		if least < 0 || c.Launches.Counted < least {
			least = c.Launches.Counted
		}
		for _, f := range c.Failures {
			if f.Class != "" {
				classes = explain.AppendNew(classes, string(f.Class))
			}
		}
	}
	total := all.Counted + all.Failed + all.Interrupted
	if reused {
		one, many = "repetition", "repetitions"
	}
	var s string
	without := refusedWords(refused, tooLarge, len(r.Cells))
	switch lost := all.Failed + all.Interrupted; {
	case total == 0 && refused > 0:
		return without
	case total == 0:
		return "No " + one + " was begun, so there is no figure."
	case all.Counted == 0:
		return fmt.Sprintf("None of the %d %s succeeded%s, so there is no figure.", total, many, because(classes))
	case lost > 0:
		s = fmt.Sprintf("%d of %d %s failed or were interrupted%s and enter no figure", lost, total, many,
			because(classes))
	case total == 1:
		s = "The one " + one + " succeeded"
	default:
		s = fmt.Sprintf("All %d %s succeeded", total, many)
	}
	if least < stats.MinRuns {
		s += fmt.Sprintf("; %d counted %s of a cell %s too few for an interval (it takes %d)", least,
			explain.Plural(least, one, many), explain.Plural(least, "is", "are"), stats.MinRuns)
	}
	return strings.TrimSpace(s + ". " + without)
}

// refusedWords counts the cells that were not launched; empty where all were.
func refusedWords(refused, tooLarge, of int) string {
	it, they := "it would not fit", "they would not fit"
	if tooLarge < refused {
		it, they = "it can't run here", "they can't run here"
	}
	switch {
	case refused == 0:
		return ""
	case of == 1:
		return "The cell was refused, because " + it + "."
	case refused == of:
		return fmt.Sprintf("All %d cells were refused, because %s.", of, they)
	}
	return fmt.Sprintf("%d of %d cells were refused, because %s.", refused, of, they)
}

func because(classes []string) string {
	if len(classes) == 0 {
		return ""
	}
	return " (" + strings.Join(classes, ", ") + ")"
}
