package depth

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Table prints the roles of all engines beside each other, for each phase: time, share of the phase and bytes a second.
// Below are each engine's own kernels that take most.
func Table(w io.Writer, profiles map[string]Profile, engines []string, most int) error {
	for _, phase := range phases(profiles) {
		if err := roleTable(w, phase, profiles, engines); err != nil {
			return err
		}
	}
	for _, engine := range engines {
		if err := kernelTable(w, engine, profiles[engine], most); err != nil {
			return err
		}
	}
	return nil
}

// phases lists the phases of all profiles, in the order of a generation.
func phases(profiles map[string]Profile) (out []string) {
	for _, p := range profiles {
		for _, r := range p.Rows {
			if r.Phase != Adapter && !slices.Contains(out, r.Phase) {
				out = append(out, r.Phase)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return order(a) - order(b) })
	return out
}

func order(phase string) int { return slices.Index([]string{"load", "prefill", "decode"}, phase) }

func roleTable(w io.Writer, phase string, profiles map[string]Profile, engines []string) error {
	fmt.Fprintf(w, "%s, by role\n", phase)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "role\t")
	for _, e := range engines {
		fmt.Fprintf(t, "%s ms\tshare\tMiB\t", e)
	}
	fmt.Fprintln(t)
	for _, role := range Roles {
		line, any := string(role)+"\t", false
		for _, e := range engines {
			var self time.Duration
			var bytes int64
			found := false
			for _, r := range profiles[e].Rows {
				if r.Phase == phase && r.Role == role {
					self, bytes, found = self+r.Self, bytes+r.Bytes, true
				}
			}
			if !found {
				line += "–\t\t\t"
				continue
			}
			any = true
			share := 100 * float64(self) / float64(max(1, profiles[e].Sum(phase)))
			line += fmt.Sprintf("%s\t%.1f%%\t%s\t", ms(self), share, mib(bytes))
		}
		if any {
			fmt.Fprintln(t, line)
		}
	}
	line := "sum\t"
	for _, e := range engines {
		line += fmt.Sprintf("%s\t%s\t\t", ms(profiles[e].Sum(phase)), ofWall(profiles[e], phase))
	}
	fmt.Fprintln(t, line)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// ofWall says what part of a phase's time by the clock the rows explain.
func ofWall(p Profile, phase string) string {
	wall := p.Wall[phase]
	if wall <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%% of the clock", 100*float64(p.Sum(phase))/float64(wall))
}

func kernelTable(w io.Writer, engine string, p Profile, most int) error {
	rows := slices.DeleteFunc(Kernels(p.Rows), func(r Row) bool { return r.Phase == Adapter })
	fmt.Fprintf(w, "%s, its own kernels\n", engine)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "phase\trole\tms\tcalls\tkernel")
	for _, r := range rows[:min(most, len(rows))] {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", r.Phase, r.Role, ms(r.Self), r.Calls, r.Kernel)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range p.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
	_, err := fmt.Fprintln(w)
	return err
}

func ms(d time.Duration) string { return fmt.Sprintf("%.4g", float64(d)/1e6) }

func mib(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return fmt.Sprintf("%.4g", float64(bytes)/(1<<20))
}
