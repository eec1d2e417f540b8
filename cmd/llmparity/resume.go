package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/words"
)

// resumeFlags go on with a run.
type resumeFlags struct {
	resume       string
	retryFailed  bool
	allowChanged bool
}

func (f *resumeFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.resume, "resume", "",
		"go on with the run in this folder: what is missing of its plan is measured, and only that")
	flags.BoolVar(&f.retryFailed, "retry-failed", false, "with --resume, measure what failed once more")
	flags.BoolVar(&f.allowChanged, "allow-changed", false,
		"with --resume, go on although the program, an engine or a browser is not what it was; the record says it")
}

// besides are the flags that go with --resume: they say where parts are found and what is told, and nothing of what is
// measured.
var besides = []string{"resume", "retry-failed", "allow-changed", "quiet", "json", "strict", "baseline", "detect",
	"under-test",
	"inconclusive", "no-baseline", "mirror"}

// resumeRun carries out what is missing of a run that was begun. Its plan is the folder's.
func (f *runFlags) resumeRun(c *cobra.Command, args []string) error {
	var err error
	c.Flags().Visit(func(flag *pflag.Flag) {
		switch {
		case err != nil || slices.Contains(besides, flag.Name) || isPlace(flag.Name):
		case slices.Contains([]string{"dry-run", "out", "output-dir"}, flag.Name):
			err = fault.New(fault.Usage, "leave it out",
				"--%s is for a run that begins, and --resume goes on with the one in %s, where it is", flag.Name,
				f.resume)
		default:
			err = fault.New(fault.Usage, "leave it out, or begin another run",
				"--%s would change the plan of the run in %s, whose plan --resume goes by", flag.Name, f.resume)
		}
	})
	if err == nil && len(args) > 0 {
		err = fault.New(fault.Usage, "leave it out", "--resume goes by the plan in %s, not by %s", f.resume, args[0])
	}
	if err != nil {
		return err
	}
	if f.resume, err = filepath.EvalSymlinks(f.resume); err != nil { // latest may soon point elsewhere
		return fault.Wrap(fault.BadRecord, err, "name a run's folder, such as results/latest", "--resume")
	}
	path := filepath.Join(f.resume, "plan.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.BadRecord, err, "name a run's folder, such as results/latest",
			"%s is not a run folder that can be gone on with", f.resume)
	}
	p, err := plan.Parse(text, path, kinds.All...)
	if err != nil { // nobody's who recorded a run there, or no longer what that had
		return fault.Wrap(fault.BadRecord, err, "name a run's folder, such as results/latest",
			"%s is not a run folder that can be gone on with", f.resume)
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

// whatIsThere says how much of a run that is gone on with is done.
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
	for id := range state.Cells() {
		done := map[int]bool{} // repetitions: what failed may have been made again
		for _, c := range state.Commits(id) {
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
	text := fmt.Sprintf("going on with %s: of %s%d repetitions %d are there", dir, most, cells*p.MostRepetitions(),
		well)
	if failed > 0 {
		text += fmt.Sprintf(", %d failed, which --retry-failed makes again", failed)
	}
	if refused > 0 {
		text += fmt.Sprintf(", %s refused, which --retry-failed tries again", words.Count(refused, "cell"))
	}
	return text, nil
}
