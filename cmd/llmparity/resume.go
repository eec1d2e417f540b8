package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/internal/bench/plan"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/internal/record/runfolder"
)

// besides are the flags that may be combined with --resume: they change nothing that is measured.
var besides = []string{"resume", "retry-failed", "allow-changed", "quiet", "json", "strict", "baseline", "detect",
	"under-test", "inconclusive", "no-baseline", "mirror"}

// again returns the given flags that --resume does not find in the plan, as one types them.
func again(flags *pflag.FlagSet) (text string) {
	flags.Visit(func(f *pflag.Flag) {
		if f.Name == "resume" || !slices.Contains(besides, f.Name) && !isPlace(f.Name) {
			return
		}
		text += " --" + f.Name
		if list, ok := f.Value.(pflag.SliceValue); ok {
			text += "=" + inShell(strings.Join(list.GetSlice(), ","))
		} else if f.Value.Type() != "bool" {
			text += "=" + inShell(f.Value.String())
		}
	})
	return text
}

var plainWord = regexp.MustCompile(`^[\w./:@%+=,~-]+$`)

// inShell quotes a word where a shell needs that.
func inShell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// resumeRun continues an interrupted run with the plan in its folder.
func (f *runFlags) resumeRun(c *cobra.Command, args []string) error {
	var err error
	c.Flags().Visit(func(flag *pflag.Flag) {
		switch {
		case err != nil || slices.Contains(besides, flag.Name) || isPlace(flag.Name):
		case slices.Contains([]string{"dry-run", "out", "output-dir"}, flag.Name):
			err = fault.New(fault.Usage, "leave it out", "--%s cannot be combined with --resume", flag.Name)
		default:
			err = fault.New(fault.Usage, "leave it out, or start a new run",
				"--%s would change the plan, and --resume uses the plan in %s", flag.Name, f.resume)
		}
	})
	if err == nil && len(args) > 0 {
		err = fault.New(fault.Usage, "leave out "+args[0], "--resume uses the plan in %s", f.resume)
	}
	if err != nil {
		return err
	}
	const do = "name a run's folder, such as results/latest"
	if f.resume, err = filepath.EvalSymlinks(f.resume); err != nil { // "latest" may point elsewhere soon
		return fault.Wrap(fault.BadRecord, err, do, "--resume")
	}
	if !runfolder.Is(f.resume) {
		return fault.New(fault.BadRecord, do, "%s cannot be resumed: it is not a run's folder", f.resume)
	}
	if err := f.resumeSides(); err != nil {
		return err
	}
	p, err := readPlan(filepath.Join(f.resume, "plan.yaml"))
	if err != nil {
		return fault.Wrap(fault.BadRecord, err, do, "%s cannot be resumed", f.resume)
	}
	f.out = filepath.Dir(f.resume)
	none := func(string) bool { return false }
	if err := f.valid(none); err != nil {
		return err
	}
	if err := f.follow(p, none); err != nil {
		return err
	}
	return f.run(c.Context(), p, c.OutOrStdout(), c.ErrOrStderr())
}

// whatIsThere says how much of an interrupted run is done.
func whatIsThere(dir string, m *plan.Matrix) (string, error) {
	state, err := record.Scan(dir)
	if err != nil {
		return "", err
	}
	well, failed, refused := 0, 0, 0
	for _, cell := range state.Cells {
		done := map[int]bool{} // by repetition: a failed one may have been repeated
		for _, c := range state.Commits(cell.ID) {
			if c.Status == record.Refused {
				refused++
			} else if c.Scoring == nil && !c.Warmup && c.Status != record.Interrupted {
				done[c.Repetition] = done[c.Repetition] || c.Status == record.OK
			}
		}
		for _, ok := range done {
			if ok {
				well++
			} else {
				failed++
			}
		}
	}
	most, repetitions := "", m.Plan.MostRepetitions()
	if repetitions > m.Plan.Repetitions {
		most = "at most "
	}
	text := fmt.Sprintf("resuming %s: %d of %s%d repetitions done", dir, well, most, len(m.Cells)*repetitions)
	if failed > 0 {
		text += fmt.Sprintf(", %d failed (--retry-failed repeats them)", failed)
	}
	if refused > 0 {
		text += fmt.Sprintf(", %s refused (--retry-failed tries again)", words.Count(refused, "cell"))
	}
	return text, nil
}
