package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/gate"
	"llmparity/internal/baseline"
	"llmparity/internal/bench/dryrun"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/progress"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/gates"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/runfolder"
	"llmparity/native/protocol"
	"llmparity/reports"
	"llmparity/reports/tables"
)

// otherSide is a side whose launches alternate with the run's: the baseline side, with which the gate compares the run,
// or the same once more.
type otherSide struct {
	flags *runFlags
	plan  plan.Plan
	dir   string // the run's folder that the plan comes from; empty: a plan's file
	side  record.Side

	show     *progress.Progress
	resolver *resolve.Resolver
}

// titles name sides while they are measured.
var titles = map[record.Role]string{record.BaselineSide: "baseline run", record.NoiseSide: "baseline run again"}

// others makes the sides that alternate with a run, from their flags and plan. Both sides know how their requests
// differ.
func (f *runFlags) others(p plan.Plan, base *runFlags, of plan.Plan, dir string) error {
	was, err := requests(base, of)
	if err != nil {
		return err
	}
	is, err := requests(f, p)
	if err != nil {
		return err
	}
	f.side = &record.Side{Role: record.RunSide, Differs: differing(is, was)}
	side := record.Side{Role: record.BaselineSide, Differs: differing(was, is)}
	f.sides = []*otherSide{{flags: base, plan: of, dir: dir, side: side}}
	if f.aa {
		twice := side
		twice.Role = record.NoiseSide
		f.sides = append(f.sides, &otherSide{flags: base, plan: of, side: twice})
	}
	return nil
}

// requests are all values of a plan and of flags that say where parts are, by field or flag.
func requests(f *runFlags, p plan.Plan) (map[string]string, error) {
	out, err := p.Values()
	if err != nil {
		return nil, err
	}
	for _, k := range kinds.All.Sections() {
		for _, field := range f.chosen().Config(k).Fields() {
			if v := reflect.ValueOf(field.To).Elem(); field.Place && field.Flag != "" && !v.IsZero() {
				out[field.Flag] = fmt.Sprint(v)
			}
		}
	}
	return out, nil
}

// differing are the values that another side does not have. Of paths it has the ends that differ.
func differing(own, other map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range own {
		if value != other[key] {
			out[key] = pathEnd(value, other[key])
		}
	}
	return out
}

// pathEnd is the end of a path that another one does not have; other texts stay.
func pathEnd(path, other string) string {
	if filepath.Base(path) == path {
		return path
	}
	parts, others := strings.Split(filepath.ToSlash(path), "/"), strings.Split(filepath.ToSlash(other), "/")
	for n := 1; n < len(parts); n++ {
		if end := parts[len(parts)-n:]; n > len(others) || !slices.Equal(end, others[len(others)-n:]) {
			return strings.Join(end, "/")
		}
	}
	return path
}

// begin makes what resolves the plans of the other sides.
func (f *runFlags) begin(show *progress.Progress, stderr io.Writer) (err error) {
	for _, o := range f.sides {
		o.show = show.Beside(titles[o.side.Role])
		if o.resolver, err = o.flags.resolver(o.plan, false, o.show.Say, stderr); err != nil {
			return err
		}
	}
	return nil
}

// everywhere are the flags that apply to all sides: where parts are, how much is measured and what is printed. All
// other flags only change PLAN.
var everywhere = []string{"quiet", "json", "strict", "mirror", "chrome-flag", "repetitions", "out", "output-dir"}

// besidePlan are the flags of a run that a side of its own can't have.
var besidePlan = []string{"against", "aa", "baseline", "resume", "retry-failed", "allow-changed", "dry-run"}

// opposite reads the plan that --against names, with its own flags.
func (f *runFlags) opposite(c *cobra.Command, p plan.Plan) error {
	switch {
	case f.against == "" && f.aa:
		return fault.New(fault.Usage, "name the baseline side with --against", "--aa requires --against")
	case f.against == "":
		return nil
	case f.baseline != "":
		return fault.New(fault.Usage, "use one of them", "--baseline and --against both name a baseline run")
	}
	words := []string{f.against}
	if !there(f.against) {
		named, err := protocol.ParseCommand(f.against)
		if err != nil {
			return fault.Wrap(fault.Usage, err, "", "--against")
		}
		words = named.Argv
	}
	path, dir := words[0], ""
	if runfolder.Is(path) {
		dir = path
	} else if b, err := (baseline.Store{Dir: baseline.Default}).Open(path); err == nil && !there(path) {
		dir = b.Dir
	}
	if dir != "" {
		path = filepath.Join(dir, "plan.yaml")
	}
	own, of, err := f.otherPlan(c, []string{path}, words[1:], func(flag string) bool {
		return slices.Contains(everywhere, flag) || isPlace(flag)
	})
	if err != nil {
		return fault.Wrap(fault.Usage, err, "", "--against %s", f.against)
	}
	return f.others(p, own, of, dir)
}

// otherPlan reads a side's plan. It has those flags of the command that shared returns true for, then its own.
func (f *runFlags) otherPlan(c *cobra.Command, args, flags []string, shared func(string) bool) (*runFlags, plan.Plan,
	error) {
	own, command := &runFlags{}, &cobra.Command{Use: "run --against", Args: cobra.NoArgs}
	own.register(command)
	var err error
	c.Flags().Visit(func(flag *pflag.Flag) {
		to := command.Flags().Lookup(flag.Name)
		if to == nil || !shared(flag.Name) || slices.Contains(besidePlan, flag.Name) {
			return
		}
		to.Changed = true
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			err = errors.Join(err, to.Value.(pflag.SliceValue).Replace(list.GetSlice()))
		} else {
			err = errors.Join(err, to.Value.Set(valueOf(flag)))
		}
	})
	if err == nil {
		err = command.ParseFlags(joinLists(flags))
	}
	if err == nil && command.Flags().NArg() > 0 {
		err = fault.New(fault.Usage, "name one plan or folder, then flags", "unexpected argument %q",
			command.Flags().Arg(0))
	}
	if err != nil {
		return nil, plan.Plan{}, err
	}
	p, err := own.plan(command, args)
	return own, p, err
}

// valueOf is a flag's value as it is set.
func valueOf(flag *pflag.Flag) string {
	if flag.Value.Type() == "stringToString" {
		return strings.Trim(flag.Value.String(), "[]")
	}
	return flag.Value.String()
}

// resumeSides finds the other sides of a resumed run. Any side's folder stands for all.
func (f *runFlags) resumeSides() error {
	s, ok := runfolder.SidesOf(f.resume)
	was, err := record.Scan(f.resume)
	switch {
	case err != nil || !ok && was.Meta.Against == "":
		return err
	case !ok:
		return fault.New(fault.BadRecord, "put it back beside this folder", "the other side of %s (--against) is in %s",
			f.resume, filepath.Join(filepath.Dir(f.resume), was.Meta.Against))
	case s.Run == "":
		return fault.New(fault.BadRecord, "start a new run", "%s has no launch: it ended before its other side began",
			f.resume)
	}
	f.resume = s.Run
	roles := []record.Role{record.BaselineSide, record.NoiseSide}
	for i, dir := range []string{s.Baseline, s.Noise} {
		if dir == "" {
			continue
		}
		o := &otherSide{flags: new(*f), side: record.Side{Role: roles[i]}}
		o.flags.resume, o.flags.sides = dir, nil
		if o.plan, err = readPlan(filepath.Join(dir, "plan.yaml")); err != nil {
			return fault.Wrap(fault.BadRecord, err, "", "the other side of %s (--against) is in %s", f.resume, dir)
		}
		if err := o.flags.follow(o.plan, func(string) bool { return false }); err != nil {
			return err
		}
		f.sides = append(f.sides, o)
	}
	return nil
}

// measure carries out a run, alone or alternating with its other sides.
func (f *runFlags) measure(ctx context.Context, o run.Options) (string, error) {
	if len(f.sides) == 0 {
		return run.Do(ctx, o)
	}
	var all []run.Options
	for _, other := range f.sides {
		defer other.resolver.Close()
		resolved, err := other.flags.ready(ctx, other.resolver, other.show)
		if err != nil {
			return "", err
		}
		of := other.flags.options(resolved, o.Tool, other.show)
		of.Side = &other.side
		all = append(all, of)
	}
	o.Side = f.side
	dirs, errs := run.Alternate(ctx, append(all, o)...)
	last := len(dirs) - 1
	err := errs[last]
	if dirs[last] == "" || err == nil { // the reason may be another side's
		err = nil
		for _, of := range errs {
			err = fault.First(err, of)
		}
	}
	return dirs[last], err
}

// untested notes differences between the run that --against names and this machine: both sides ran what is here now, so
// they were not tested.
func (f *runFlags) untested(is *record.Run) ([]string, error) {
	var out []string
	for _, o := range f.sides {
		if o.dir == "" {
			continue
		}
		was, err := record.Open(o.dir)
		if err != nil {
			return nil, err
		}
		for _, d := range gate.Differences(compare.With(comparison(), was), compare.With(comparison(), is)) {
			out = append(out, "not tested: "+d+" ("+o.dir+"): both sides ran what is here now")
		}
	}
	return out, nil
}

// dry prints what a plan would do; of an interleaved run, what each side would do. It ends as the run would, as far as
// that is known.
func (f *runFlags) dry(ctx context.Context, p plan.Plan, stdout io.Writer, notes ...string) error {
	say := func(string, string) {}
	r, err := f.resolver(p, true, say, io.Discard)
	for _, o := range f.sides {
		if err == nil {
			o.resolver, err = o.flags.resolver(o.plan, true, say, io.Discard)
		}
	}
	if err != nil {
		return err
	}
	if len(f.sides) == 0 {
		return f.dried(ctx, r, stdout, notes...)
	}
	between := func(json, words string) {
		if f.json {
			words = json
		}
		fmt.Fprint(stdout, words)
	}
	for i, o := range f.sides {
		if i == 0 {
			between(`{"sides":[`+"\n", "")
		} else {
			between(",\n", "\n")
		}
		between("", headed(titles[o.side.Role], o.side.Differs))
		err = fault.First(err, o.flags.dried(ctx, o.resolver, stdout))
	}
	between(",\n", "\n"+headed("run", f.side.Differs))
	err = fault.First(err, f.dried(ctx, r, stdout, notes...))
	between("]}\n", fmt.Sprintf("\nLaunches of the %d sides alternate, %d of each cell.\n", len(f.sides)+1, p.Repetitions))
	return err
}

// headed is the heading of a side in a dry run.
func headed(title string, differs map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(differs)) {
		all = append(all, key+": "+differs[key])
	}
	text := strings.ToUpper(title[:1]) + title[1:]
	if len(all) > 0 {
		text += " (" + strings.Join(all, ", ") + ")"
	}
	return text + "\n"
}

// dried prints what one side would do.
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
	err = show(stdout)
	for _, why := range resolved.Reasons() {
		if why.Answer == engine.Refused && (f.byName == nil || slices.ContainsFunc(why.Engines, f.byName)) {
			err = fault.First(err, why.Err)
		}
	}
	return fault.First(err, resolved.Ends(f.strict))
}

// sides are the records of a run: of an interleaved one all sides'.
type sides struct {
	runs  []*record.Run // the run is the last; before it comes the baseline side
	noise *record.Run   // the baseline side once more; nil: it was measured once
}

// openSides reads a run's folder, and the folders of its other sides; if logs is set, also another program's log.
func openSides(dir string, logs bool) (*sides, error) {
	of, ok := runfolder.SidesOf(dir)
	if !ok || of.Run == "" {
		r, err := openRun(dir, logs)
		return &sides{runs: []*record.Run{r}}, err
	}
	s := &sides{}
	for _, dir := range of.All() {
		r, err := record.Open(dir)
		if err != nil {
			return nil, err
		}
		if dir == of.Noise {
			s.noise = r
		} else {
			s.runs = append(s.runs, r)
		}
	}
	return s, nil
}

// run is the side that is compared with the baseline side.
func (s *sides) run() *record.Run { return s.runs[len(s.runs)-1] }

func (s *sides) compare(o compare.Rules) *compare.Result {
	o.Noise = s.noise
	return compare.With(o, s.runs...)
}

// logged reports whether this is no run but the memory log of another program.
func (s *sides) logged() bool {
	cells := s.run().Cells
	return len(cells) > 0 && cells[0].Model.Format == record.Foreign
}

// folders are those of all sides.
func (s *sides) folders() (out []string) {
	for _, r := range s.runs {
		out = append(out, r.Dir)
	}
	if s.noise != nil {
		out = append(out, s.noise.Dir)
	}
	return out
}

// judge judges the run by a gate against the baseline side, and names both by what differs.
func (s *sides) judge(g *gates.Gate, result *compare.Result, baselineName, store string) (*gates.Outcome, error) {
	of := gate.Against{Name: gate.Named(s.run(), g, baselineName), Store: store}
	if baselineName == "" && len(s.runs) > 1 {
		of.Sides = []string{result.RunName(0), result.RunName(1)}
	}
	judged, err := gate.Judge(s.run(), g, of, comparison())
	if err == nil && judged.Interleaved {
		judged.Output = answer.Of(result).Output.Headline
	}
	return judged, err
}

// concludeSides judges an interleaved run, prints the result of all sides, and writes one report, which each folder
// has. shown is why the result could not be shown, judged a fault unless the gate passes.
func (f *runFlags) concludeSides(s *sides, checks *gates.Gate, stdout io.Writer) (report string, judged, shown error) {
	result := s.compare(comparison())
	if checks != nil {
		var notes []string
		outcome, err := s.judge(checks, result, "", baseline.Default)
		if err == nil {
			notes, err = f.untested(s.run())
		}
		if err == nil {
			outcome.Notes = append(outcome.Notes, notes...)
			result.Gate, err = outcome, saveGate(s.run().Dir, outcome)
		}
		if judged = err; err == nil {
			judged = gate.Fault(outcome, stdout != io.Discard)
		}
	}
	show := reports.Table
	if f.quiet {
		show = reports.Answer
	}
	if err := show(stdout, result); err != nil {
		return "", judged, err
	}
	if f.quiet && result.Gate != nil {
		shown = reports.GateTable(stdout, result.Gate)
	}
	const do = "name another folder with --out"
	for _, dir := range s.folders() {
		err := reports.File(filepath.Join(dir, "summary.csv"), do,
			func(w io.Writer) error { return tables.Summary(w, result) })
		if err == nil {
			err = writeHTML(filepath.Join(dir, "report.html"), do, result, s.runs...)
		}
		shown = errors.Join(shown, err)
	}
	report = filepath.Join(s.run().Dir, "report.html")
	if shown == nil {
		places(stdout, s.run().Dir, report, result, f.quiet)
	}
	return report, judged, shown
}
