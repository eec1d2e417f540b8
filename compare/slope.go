package compare

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/compare/explain"
	"llmparity/compare/growth"
	"llmparity/internal/record"
)

// growthCard says what memory grows by with each token of the context, beside the formula of the KV cache; empty unless
// cells differ in their contexts. Sweeps with the same answer share it.
func (r *Result) growthCard() Card {
	var answers []string
	of := map[string][]string{}
	for _, s := range r.Sweeps {
		if s.Axis != growth.AxisContext {
			continue
		}
		if words := slopeWords(s); words != "" {
			answers = explain.AppendNew(answers, words)
			of[words] = append(of[words], s.Label)
		}
	}
	switch len(answers) {
	case 0:
		return Card{}
	case 1:
		in := explain.And(of[answers[0]], 3)
		return Card{Name: "Growth", Headline: answers[0], Text: "Over contexts, in " + in + "."}
	}
	for i, words := range answers {
		answers[i] = explain.And(of[words], 3) + ": " + strings.ToLower(words[:1]) + words[1:]
	}
	return Card{Name: "Growth", Headline: answers[0], Text: r.upper(strings.Join(answers[1:], ". ")) + "."}
}

// slopeWords are the slope of a sweep, its interval and the formula: of what is reserved for the KV cache, or where no
// engine says that, of all memory.
func slopeWords(s growth.Sweep) string {
	what := "the KV cache"
	at := slices.IndexFunc(s.Rates, func(r growth.Rate) bool { return r.Of == growth.OfReserved && r.Known() })
	if at < 0 {
		what = "memory"
		at = slices.IndexFunc(s.Rates, func(r growth.Rate) bool { return r.Name == growth.SettledPSS && r.Known() })
	}
	if at < 0 {
		return ""
	}
	rate := s.Rates[at]
	unit, size := "bytes", 1.0
	if rate.Center() >= record.MiB {
		unit, size = "MiB", record.MiB
	} else if rate.Center() >= 1024 {
		unit, size = "KiB", 1024
	}
	amount := func(v float64) string { return explain.Amount(v / size) }
	text := fmt.Sprintf("%s grows by %s %s a token", strings.ToUpper(what[:1])+what[1:], amount(rate.Center()), unit)
	interval := " (too few launches for an interval)"
	if i := rate.Interval; i != nil {
		interval = explain.CI(i, amount)
		if i.Lo <= 0 && i.Hi >= 0 {
			text = fmt.Sprintf("No growth of %s with the context detected: %s %s a token", what, amount(rate.Center()),
				unit)
		}
	}
	if text += interval; s.Theory != nil {
		text += "; the formula says " + amount(s.Theory.Bytes)
	}
	return text
}
