package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/words"
)

// besides are the flags that may be combined with --resume: they change nothing that is measured.
var besides = []string{"resume", "retry-failed", "allow-changed", "quiet", "json", "strict", "baseline", "detect",
	"under-test", "inconclusive", "no-baseline", "mirror"}

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
	if f.resume, err = filepath.EvalSymlinks(f.resume); err != nil { // "latest" may point elsewhere soon
		return fault.Wrap(fault.BadRecord, err, "name a run's folder, such as results/latest", "--resume")
	}
	p, err := readPlan(filepath.Join(f.resume, "plan.yaml"))
	if err != nil {
		return fault.Wrap(fault.BadRecord, err, "name a run's folder, such as results/latest", "%s cannot be resumed",
			f.resume)
	}
	if err := f.valid(func(string) bool { return false }); err != nil {
		return err
	}
	f.out = filepath.Dir(f.resume)
	if err := f.follow(p, func(string) bool { return false }); err != nil {
		return err
	}
	if f.other, err = f.resumedWith(); err != nil {
		return err
	}
	return f.run(c.Context(), p, c.OutOrStdout(), c.ErrOrStderr())
}

// whatIsThere says how much of an interrupted run is done.
func whatIsThere(dir string, p plan.Plan) (string, error) {
	state, err := record.Scan(dir)
	if err != nil {
		return "", err
	}
	_, cells, err := p.Count()
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
	most := ""
	if p.MostRepetitions() > p.Repetitions {
		most = "at most "
	}
	text := fmt.Sprintf("resuming %s: %d of %s%d repetitions done", dir, well, most, cells*p.MostRepetitions())
	if failed > 0 {
		text += fmt.Sprintf(", %d failed (--retry-failed repeats them)", failed)
	}
	if refused > 0 {
		text += fmt.Sprintf(", %s refused (--retry-failed tries again)", words.Count(refused, "cell"))
	}
	return text, nil
}
