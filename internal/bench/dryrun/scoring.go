package dryrun

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"llmparity/internal/bench/resolve"
	"llmparity/internal/kit/words"
)

// Scoring is what all engines score of the plan's text after the measurements.
type Scoring struct {
	Engines []string `json:"engines"`
	Forms   int      `json:"forms"`             // models
	Times   int      `json:"times"`             // how often the text is scored: by each engine with each form
	Windows int      `json:"windows"`           // of the text, the most of all forms; 0: unknown until a model is here
	Seconds *float64 `json:"seconds,omitempty"` // of those whose time is known
	Unknown int      `json:"times_of_unknown_time"`
}

// scoring adds up what is scored; nil: nothing.
func scoring(all []resolve.Scoring) *Scoring {
	if len(all) == 0 {
		return nil
	}
	out, seconds, forms := &Scoring{Times: len(all)}, 0.0, map[string]bool{}
	for _, s := range all {
		if !slices.Contains(out.Engines, s.Engine) {
			out.Engines = append(out.Engines, s.Engine)
		}
		forms[s.Model] = true
		out.Windows = max(out.Windows, s.Windows)
		if s.Seconds == nil {
			out.Unknown++
			continue
		}
		seconds += *s.Seconds
		out.Seconds = &seconds
	}
	out.Forms = len(forms)
	return out
}

// print says how much is scored, by whom, and how long that takes.
func (s *Scoring) print(w io.Writer) {
	what := words.Count(s.Forms, "form")
	if s.Times != s.Forms*len(s.Engines) {
		what = words.Count(s.Times, "time")
	}
	windows := "windows"
	if s.Windows > 0 {
		windows = words.Count(s.Windows, "window")
	}
	fmt.Fprintf(w, "Scoring: %s x %s in %s, ", what, windows, strings.Join(s.Engines, ", "))
	switch {
	case s.Seconds == nil:
		fmt.Fprintln(w, "time unknown: no earlier run scored or generated here.")
	case s.Unknown > 0:
		fmt.Fprintf(w, "about %s, plus %d of %d texts whose time is unknown.\n", took(*s.Seconds), s.Unknown, s.Times)
	default:
		fmt.Fprintf(w, "about %s.\n", took(*s.Seconds))
	}
}

// times say how long the run takes, and its scoring.
func (sum Summary) times(w io.Writer) {
	s := sum.Scoring
	included, later := "", " Different outputs are scored after that."
	if s != nil {
		s.print(w)
		if included, later = ", with scoring", ""; s.Unknown > 0 {
			included = ", without unknown scoring"
		}
	}
	switch {
	case sum.Seconds == nil:
		fmt.Fprintf(w, "Time: unknown, because the results folder has no run of these engines with these models; "+
			"a run with --repetitions 1 tells.\n")
	case sum.UnknownTime > 0:
		fmt.Fprintf(w, "Time: roughly %s%s, judging by earlier runs, plus %s whose time is unknown.\n", took(*sum.Seconds),
			included, words.Count(sum.UnknownTime, "cell"))
	default:
		fmt.Fprintf(w, "Time: roughly %s%s, judging by earlier runs.%s\n", took(*sum.Seconds), included, later)
	}
}
