package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/compare"
	"llmparity/compare/gate"
	"llmparity/internal/baseline"
	"llmparity/internal/bench/dryrun"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/progress"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/native/protocol"
)

// otherSide is the side of --against. Its launches alternate with the run's, and the gate compares the run with it.
type otherSide struct {
	flags *runFlags
	plan  plan.Plan
	dir   string // the run's folder that the plan comes from; empty: a plan's file

	show     *progress.Progress
	resolver *resolve.Resolver
}

// begin makes what resolves the side's plan; nil: there is no side.
func (o *otherSide) begin(show *progress.Progress, stderr io.Writer) (err error) {
	if o == nil {
		return nil
	}
	o.show = show.Beside("baseline run")
	o.resolver, err = o.flags.resolver(o.plan, false, o.show.Say, stderr)
	return err
}

// everywhere are the flags that apply to both sides: where parts are, how much is measured and what is printed. All
// other flags only change PLAN.
var everywhere = []string{"quiet", "json", "strict", "mirror", "chrome-flag", "repetitions", "out", "output-dir"}

// opposite reads the plan that --against names, with its own flags.
func (f *runFlags) opposite(c *cobra.Command) (*otherSide, error) {
	if f.against == "" {
		return nil, nil
	}
	if f.baseline != "" {
		return nil, fault.New(fault.Usage, "use one of them", "--baseline and --against both name a baseline run")
	}
	words := []string{f.against}
	if !there(f.against) {
		named, err := protocol.ParseCommand(f.against)
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "", "--against")
		}
		words = named.Argv
	}
	o := &otherSide{flags: &runFlags{}}
	own := &cobra.Command{Use: "run --against", Args: cobra.NoArgs}
	o.flags.register(own)
	var err error
	c.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains(everywhere, flag.Name) && !isPlace(flag.Name) {
			return
		}
		to := own.Flags().Lookup(flag.Name)
		to.Changed = true
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			err = errors.Join(err, to.Value.(pflag.SliceValue).Replace(list.GetSlice()))
		} else {
			err = errors.Join(err, to.Value.Set(flag.Value.String()))
		}
	})
	if err == nil {
		err = own.ParseFlags(joinLists(words[1:]))
	}
	if err == nil && own.Flags().NArg() > 0 {
		err = fault.New(fault.Usage, "name one plan or folder, then flags", "unexpected argument %q",
			own.Flags().Arg(0))
	}
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "--against %s", f.against)
	}
	path := words[0]
	if record.IsRun(path) {
		o.dir = path
	} else if b, err := (baseline.Store{Dir: baseline.Default}).Open(path); err == nil && !there(path) {
		o.dir = b.Dir
	}
	if o.dir != "" {
		path = filepath.Join(o.dir, "plan.yaml")
	}
	if o.plan, err = o.flags.plan(own, []string{path}); err != nil {
		return nil, err
	}
	return o, nil
}

// resumedWith is the other side of a resumed run; nil: there is none.
func (f *runFlags) resumedWith() (*otherSide, error) {
	s, err := record.Scan(f.resume)
	if err != nil || s.Meta.Against == "" {
		return nil, err
	}
	o := &otherSide{flags: new(*f)}
	o.flags.resume = filepath.Join(filepath.Dir(f.resume), s.Meta.Against)
	o.plan, err = readPlan(filepath.Join(o.flags.resume, "plan.yaml"))
	if err != nil {
		return nil, fault.Wrap(fault.BadRecord, err, "", "the other side of %s (--against) is in %s",
			f.resume, o.flags.resume)
	}
	return o, o.flags.follow(o.plan, func(string) bool { return false })
}

// measure carries out a run, alone or alternating with the other side, whose report is written too.
func (f *runFlags) measure(ctx context.Context, o run.Options) (string, error) {
	if f.other == nil {
		return run.Do(ctx, o)
	}
	other, show := f.other.flags, f.other.show
	defer f.other.resolver.Close()
	resolved, err := other.ready(ctx, f.other.resolver, show)
	if err != nil {
		return "", err
	}
	dirs, errs := run.Both(ctx, other.options(resolved, o.Tool, show), o)
	if dirs[0] != "" {
		_, _, err := conclude(dirs[0], io.Discard, false)
		errs[0] = errors.Join(errs[0], err)
	}
	if dirs[1] == "" || errs[1] == nil {
		errs[1] = errors.Join(errs[1], errs[0])
	}
	return dirs[1], errs[1]
}

// untested notes differences between the run that --against names and this machine: both sides ran what is here now, so
// they were not tested.
func (o *otherSide) untested(is *compare.Result) ([]string, error) {
	if o == nil || o.dir == "" {
		return nil, nil
	}
	was, err := record.Open(o.dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range gate.Differences(compare.With(comparison(), was), is) {
		out = append(out, "not tested: "+d+" ("+o.dir+"): both sides ran what is here now")
	}
	return out, nil
}

// dry prints what a plan would do, and the other side's below it. It ends as the run would, as far as that is known.
func (f *runFlags) dry(ctx context.Context, p plan.Plan, stdout io.Writer, notes ...string) error {
	if f.other != nil && f.json {
		return fault.New(fault.Usage, "leave out one of them", "--dry-run --json does not support --against")
	}
	say := func(string, string) {}
	r, err := f.resolver(p, true, say, io.Discard)
	if err == nil && f.other != nil {
		f.other.resolver, err = f.other.flags.resolver(f.other.plan, true, say, io.Discard)
	}
	if err != nil {
		return err
	}
	return f.dried(ctx, r, stdout, notes...)
}

func (f *runFlags) dried(ctx context.Context, r *resolve.Resolver, stdout io.Writer, notes ...string) error {
	resolved, err := r.Resolve(ctx)
	if err != nil {
		return err
	}
	notes = slices.DeleteFunc(append(notes, f.left), func(note string) bool { return note == "" })
	would := dryrun.Of(resolved, notes...)
	show := would.Print
	if f.json {
		show = would.JSON
	}
	if err = show(stdout); err == nil && f.other != nil {
		fmt.Fprint(stdout, "\nBaseline run\n")
		err = f.other.flags.dried(ctx, f.other.resolver, stdout)
	}
	for _, why := range resolved.Reasons() {
		if why.Answer == engine.Refused && (f.byName == nil || slices.ContainsFunc(why.Engines, f.byName)) {
			err = fault.First(err, why.Err)
		}
	}
	return fault.First(err, resolved.Ends(f.strict))
}

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
	if !record.IsRun(f.resume) {
		return fault.New(fault.BadRecord, do, "%s cannot be resumed: it is not a run's folder", f.resume)
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
	if f.other, err = f.resumedWith(); err != nil {
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
