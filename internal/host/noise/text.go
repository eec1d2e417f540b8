package noise

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes the result for people.
func (r *Result) Print(w io.Writer) {
	fmt.Fprintln(w, r.Machine)
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "WORK\tMEDIAN\tSPREAD\tSLOWEST\tDRIFT"
	for _, h := range r.Tolerances {
		head += fmt.Sprintf("\t%d LAUNCHES", h.Launches)
	}
	fmt.Fprintln(t, head)
	for _, s := range r.Scores {
		if s.Skipped != "" {
			continue
		}
		drift := "none"
		if s.Drift != 0 {
			drift = fmt.Sprintf("%+.1f%%", 100*s.Drift)
		}
		fmt.Fprintf(t, "%s\t%.3g %s\t±%.1f%%\t+%.0f%%\t%s", s.Name, s.Median, s.Unit, 100*s.Spread, 100*s.Worst, drift)
		for _, h := range Held(s.Spread) {
			fmt.Fprintf(t, "\t%.1f%%", 100*h.Change)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	for _, s := range r.Scores {
		if s.Skipped != "" {
			fmt.Fprintf(w, "%s: skipped: %s\n", s.Name, strings.TrimSpace(s.Skipped))
		}
	}
	fmt.Fprintf(w, "\nThe last columns are the smallest change that so many launches a side find in 9 of 10 cases, if "+
		"nothing\nvaries but the machine. Engines vary, too: see the intervals of a run.\n")
	fmt.Fprintf(w, "Noisiest: %s. %s\n", r.Worst, r.advice())
}

// advice says what to expect of the machine.
func (r *Result) advice() string {
	for _, h := range r.Tolerances {
		switch {
		case h.Change <= 0.05:
			return fmt.Sprintf("A tolerance of 5%% holds with %d launches.", h.Launches)
		case h.Change <= 0.1 && h.Launches >= 10:
			return fmt.Sprintf("A tolerance of 10%% holds with %d launches; 5%% needs a quieter machine, or a control cell.", h.Launches)
		}
	}
	return "Not even 30 launches hold 10%: measure both sides in one run (--against), or use a control cell."
}
