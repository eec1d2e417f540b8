package answer

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/growth"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// growthCard says by how much memory grows with each token of the context, and what the formula of the KV cache gives.
// It is empty if all cells have the same context. Sweeps with the same answer share it.
func (r view) growthCard() Card {
	var answers, short, titles []string
	of := map[string][]string{}
	for _, s := range r.Sweeps {
		if s.Axis != growth.AxisContext {
			continue
		}
		title := r.Cells[s.Cells[0]].Title()
		if words := slopeWords(s, title); words != "" {
			answers, titles = explain.AppendNew(answers, words), explain.AppendNew(titles, title)
			short = explain.AppendNew(short, slopeHead(s))
			of[words] = append(of[words], s.Label)
		}
	}
	if len(answers) == 0 {
		return Card{}
	}
	out := Card{Name: "Growth", Headline: short[0]}
	switch {
	case len(short) == 1:
	case len(titles) == 2:
		out.Headline = fmt.Sprintf(explain.GrowthDiffers, explain.And(titles, 2))
	default:
		out.Headline = fmt.Sprintf(explain.GrowthDiffers, "cells")
	}
	if len(answers) == 1 {
		out.Text = answers[0] + ". Over contexts, in " + explain.And(of[answers[0]], 3) + "."
		return out
	}
	for i, words := range answers {
		answers[i] = explain.And(of[words], 3) + ": " + explain.Lower(words)
	}
	out.Text = strings.Join(answers, ". ") + "."
	return out
}

// slopeHead is a sweep's slope in a few words.
func slopeHead(s growth.Sweep) string {
	rate, what := quotedSlope(&s)
	if rate.Of == growth.OfReserved {
		what = "KV cache" // its dtype is in the text
	}
	if i := rate.Interval; i != nil && i.Lo <= 0 && i.Hi >= 0 {
		return fmt.Sprintf(explain.GrowthNone, what)
	}
	size, unit := slopeUnit(rate)
	return fmt.Sprintf(explain.GrowthSlope, explain.Capital(what), explain.Amount(rate.Center()/size), unit)
}

// slopeUnit is the unit of a slope, and its bytes.
func slopeUnit(rate *growth.Rate) (float64, string) {
	switch {
	case rate.Center() >= record.MiB:
		return record.MiB, "MiB"
	case rate.Center() >= 16<<10:
		return 1024, "KiB"
	}
	return 1, "bytes"
}

// quotedSlope is the slope in the answer for a sweep, and what it is the slope of: the reserved KV cache if the engine
// reports it, else all memory. It is nil if there is none.
func quotedSlope(s *growth.Sweep) (rate *growth.Rate, of string) {
	find := func(is func(r growth.Rate) bool) *growth.Rate {
		if at := slices.IndexFunc(s.Rates, func(r growth.Rate) bool { return is(r) && r.Known() }); at >= 0 {
			return &s.Rates[at]
		}
		return nil
	}
	rate = find(func(r growth.Rate) bool { return r.Of == growth.OfReserved })
	if rate == nil {
		return find(func(r growth.Rate) bool { return r.Name == growth.SettledPSS }), "memory"
	}
	if rate.DType != "" {
		return rate, "the KV cache in " + rate.DType
	}
	return rate, "the KV cache"
}

// slopeWords has the slope of a sweep, its interval and the formula. title is the engine's.
func slopeWords(s growth.Sweep, title string) string {
	rate, what := quotedSlope(&s)
	if rate == nil {
		return ""
	}
	size, unit := slopeUnit(rate)
	amount := func(v float64) string { return explain.Amount(v / size) }
	text := fmt.Sprintf("%s grows by %s %s a token", strings.ToUpper(what[:1])+what[1:], amount(rate.Center()), unit)
	interval := "too few launches for an interval"
	if i := rate.Interval; i != nil {
		interval = explain.Interval(i, amount)
		if amount(i.Lo) == amount(i.Hi) {
			interval = "the 95% CI is narrower than the rounding"
			if sameInEach(rate.Points) {
				interval = "the same in every launch"
			}
		}
		if i.Lo <= 0 && i.Hi >= 0 {
			text = fmt.Sprintf("No growth of %s with the context detected: %s %s a token", what, amount(rate.Center()),
				unit)
		}
	}
	if rate.Method == evidence.EngineLog {
		text += " by " + title + "'s own log"
		if rate.Rounded != nil {
			text += fmt.Sprintf(", whose rounding allows %s to %s", amount(rate.Rounded.Low), amount(rate.Rounded.High))
		}
	}
	if s.Theory != nil {
		interval += "; formula: " + amount(s.Theory.Bytes)
	}
	text += " (" + interval + ")"
	at := slices.IndexFunc(s.Rates, func(r growth.Rate) bool { // none that may be 0
		return r.Name == figure.PeakPSS && r.Interval != nil && (r.Interval.Lo > 0 || r.Interval.Hi < 0)
	})
	if at >= 0 && rate.Of == growth.OfReserved {
		peak := s.Rates[at]
		text += fmt.Sprintf(", peak memory by %s %s%s", amount(peak.Center()), unit,
			explain.CI(peak.Interval, amount))
	}
	return text
}

// sameInEach reports whether all launches of each cell have the same value.
func sameInEach(points []growth.GrowthPoint) bool {
	first := map[int]float64{}
	for _, p := range points {
		if v, seen := first[p.Cell]; seen && v != p.MiB {
			return false
		}
		first[p.Cell] = p.MiB
	}
	return true
}
