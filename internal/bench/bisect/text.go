package bisect

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
)

// Text says the answer for people: the first line is the conclusion. title is the figure's.
func (a *Answer) Text(title string, minEffect float64) string {
	var out []string
	ends := fmt.Sprintf("%s and %s", a.Versions[0], a.Versions[len(a.Versions)-1])
	switch a.Outcome {
	case Found:
		who := a.BadVersion
		if a.Bad-a.Good > 1 {
			who += ", or a skipped version before it,"
		}
		out = append(out, fmt.Sprintf("%s changed %s: %s against %s; probability of this place %s", who, title, a.Change,
			a.GoodVersion, percent(a.Sure)))
		if a.Partly {
			out = append(out, fmt.Sprintf("It is a part of the difference of %s: %s. Search the rest: begin or end at %s.", ends,
				a.Whole, a.BadVersion))
		}
	case None:
		out = append(out, fmt.Sprintf("no change of %s between %s: %s; a change of %.3g%% or more is ruled out", title, ends,
			a.Whole, 100*minEffect))
	default:
		out = append(out, a.undecided(title, ends))
	}
	out = append(out, fmt.Sprintf("%s of %s: %s", words.Count(a.Launches, "launch"),
		words.Count(len(a.Measured), "version"), strings.Join(a.Measured, ", ")))
	for _, name := range slices.Sorted(maps.Keys(a.Skipped)) {
		out = append(out, fmt.Sprintf("%s was skipped: %s", name, a.Skipped[name]))
	}
	return strings.Join(out, "\n") + "\n"
}

// Err is that noise forbids an answer, which has been printed; nil: there is one.
func (a *Answer) Err() error {
	if a.Outcome == Undecided {
		return &fault.Error{Kind: fault.Inconclusive}
	}
	return nil
}

// undecided says what noise hides.
func (a *Answer) undecided(title, ends string) string {
	if a.Needs > 0 {
		return fmt.Sprintf("inconclusive: %s of %s differs by %s, and launches vary too much; about %d rounds, or a quieter "+
			"machine, would decide", title, ends, a.Whole, a.Needs)
	}
	return fmt.Sprintf("inconclusive: %s changed after %s and not after %s (%s), by %s in all; raise --max-launches, or use a "+
		"quieter machine", title, a.GoodVersion, a.BadVersion, percent(a.Sure), a.Whole)
}

// String has the interval.
func (c Change) String() string {
	if c.Interval == nil {
		return fmt.Sprintf("%+.1f%%", c.Percent)
	}
	return fmt.Sprintf("%+.1f%% (95%% CI %+.1f to %+.1f)", c.Percent, c.Interval.Lo, c.Interval.Hi)
}

// percent is a probability that never is said to be certain.
func percent(share float64) string { return fmt.Sprintf("%.3g%%", math.Min(99.9, 100*share)) }
