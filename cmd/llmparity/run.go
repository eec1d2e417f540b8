package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/assets/charts"
	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/compare/gate"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/progress"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/gates"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/reports"
	"llmparity/reports/tables"
)

// runFlags are the flags of run. Most of them change a plan.
type runFlags struct {
	engines, engine            []string // a value of --engine may contain commas
	model, out                 string
	prompts                    []string
	maxTokens, context         int
	quiet, json, helpAll       bool
	dryRun, strict, noCheckOOM bool
	parity, chat               bool
	noCheck, checkReference    bool
	allowFallback              bool
	baseline, against          string
	reference                  map[string]string        // values of the reference cell, by axis
	aa                         bool                     // measure the baseline side twice
	sides                      []*otherSide             // what --against measures, the baseline side first; nil: nothing
	side                       *record.Side             // of the run, if there are others
	byName                     func(engine string) bool // whether the user asked for the engine; nil: for all
	// Of an interrupted run: its folder, flags that are not in its plan, whether failed launches are repeated, and
	// whether programs may have changed.
	resume, again             string
	retryFailed, allowChanged bool
	presetFlags
	axisFlags
	scheduleFlags
	engineFlags
	profileFlags
	judgeFlags
}

const (
	modelHelp = "model: a GGUF file, a WebLLM package's folder, an id of WebLLM's catalogue, hf:ORG/NAME[/FILE] or " +
		"ollama:NAME for another tool's downloads, served:NAME, or the name tiny, tiny-q4_0, tiny-q8_0 or smollm2"
	allowFallbackHelp = "measure an engine that got less than was asked for, e.g. the CPU instead of a GPU, or fewer threads"
	mirrorHelp        = "address or folder with catalogue models, a folder also with model libraries; must have the layout of the public site"
)

var contextHelp = fmt.Sprintf(
	"context window in tokens; 0: the model's maximum (default %d, or the model's maximum if smaller)", resolve.MaxUnasked)

func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [PLAN]",
		Short: "Run models in engines, several launches each, and compare them",
		Long: `Run models in engines, several launches each, and compare them.

Without PLAN (a YAML file), the built-in tiny model runs in WebLLM and in llama.cpp. Flags override the
plan. If flags have several values, every combination is measured. Each combination is a cell. The
run is saved in a folder of its own, with a report at the end.

Plans: docs/howto/write-a-plan.md`,
		Example: `  llmparity run --model my.gguf --prompt "Once upon a time" --max-tokens 100
  llmparity run plan.yaml --baseline main`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			f.again = again(c.Flags())
			if f.helpAll {
				helpOf(c, c.OutOrStdout(), func(*pflag.Flag) bool { return true })
				return nil
			}
			if f.resume != "" {
				return f.resumeRun(c, args)
			}
			if c.Flags().Changed("retry-failed") || c.Flags().Changed("allow-changed") {
				return fault.New(fault.Usage, "", "--retry-failed and --allow-changed require --resume DIR")
			}
			p, err := f.plan(c, args)
			if err == nil {
				err = f.opposite(c, p)
			}
			if err != nil {
				return err
			}
			return f.start(c, p)
		},
	}
	f.register(c)
	helpAllFlag(c.Flags(), &f.helpAll)
	return c
}

func helpAllFlag(flags *pflag.FlagSet, all *bool) {
	flags.BoolVar(all, "help-all", false, "show all flags")
	_ = flags.MarkHidden("help-all")
}

// runCommon are the flags of run that its short help shows.
const runCommon = "preset model engines engine threads dtype prompt input-len max-tokens context concurrency " +
	"repetitions until-ci isolation timeout dry-run no-check-oom resume baseline against out quiet json chrome webllm-version " +
	"openai-url"

func (f *runFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.model, "model", "", modelHelp)
	flags.StringSliceVar(&f.engines, "engines", nil, "engines to run, e.g. webllm,llamacpp; one of "+kinds.All.List())
	flags.StringArrayVar(&f.engine, "engine", nil,
		"one engine to run, beside those of --engines, e.g. 'exec:./my-engine --flag' (docs/howto/add-an-engine.md); repeatable")
	flags.IntVar(&f.threads, "threads", 1, threadsHelp())
	flags.StringVar(&f.chosen().Settings.Mirror, "mirror", "", mirrorHelp)
	under(flags, "What to run", "model engines engine threads mirror")
	flags.StringArrayVar(&f.prompts, "prompt", nil, "prompt, passed to the model as it is, or with --chat in its chat template; repeatable")
	flags.BoolVar(&f.chat, "chat", false, "render each prompt as a user's message in the model's own chat template")
	flags.IntVar(&f.maxTokens, "max-tokens", 0, "number of tokens to generate")
	flags.IntVar(&f.context, "context", 0, contextHelp+"; several: --contexts 1024,4096")
	under(flags, "Request", "prompt chat max-tokens context")
	f.presetFlags.register(flags)
	f.axisFlags.register(flags)
	flags.StringToStringVar(&f.reference, referenceFlag, nil, referenceHelp)
	under(flags, "What to run", referenceFlag)
	f.scheduleFlags.register(flags)
	flags.BoolVar(&f.dryRun, "dry-run", false, "launch nothing; show what would be measured (the cells), its predicted memory, and what is missing on this machine")
	flags.BoolVar(&f.strict, "strict", false, "launch nothing if any cell cannot run here")
	flags.BoolVar(&f.noCheckOOM, "no-check-oom", false, "launch cells even if they are predicted to run out of memory")
	flags.BoolVar(&f.allowFallback, "allow-fallback", false, allowFallbackHelp)
	under(flags, "Before the run", "dry-run strict no-check-oom allow-fallback")
	flags.StringVar(&f.resume, "resume", "", "folder of an interrupted run: measure the missing launches")
	flags.BoolVar(&f.retryFailed, "retry-failed", false, "with --resume: also repeat failed launches")
	flags.BoolVar(&f.allowChanged, "allow-changed", false,
		"with --resume: continue even if llmparity, an engine or a browser has changed")
	under(flags, "Resume", "resume retry-failed allow-changed")
	flags.StringVar(&f.baseline, "baseline", "", "baseline run to compare with: a saved name or a run's folder; if the plan's gate has no tolerances: "+
		(*gates.Gate)(nil).Against().Tolerances())
	flags.StringVar(&f.against, "against", "",
		"also measure another plan, run or saved baseline run, with alternating launches, and check the difference "+
			"with the gate; may contain flags, e.g. 'plan.yaml --chrome /opt/chrome-155/chrome'")
	flags.BoolVar(&f.aa, "aa", false,
		"with --against: also measure the baseline side a second time; the report shows this machine noise beside each difference")
	under(flags, "Gate", "baseline against aa")
	f.judgeFlags.register(flags)
	flags.StringVar(&f.out, "out", "results", "folder for results; each run gets a subfolder")
	flags.StringVar(&f.out, "output-dir", "results", "the same as --out")
	_ = flags.MarkHidden("output-dir")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only the result, no progress")
	flags.BoolVar(&f.json, "json", false, "print progress and result as JSON lines; with --dry-run, one JSON document")
	flags.BoolVar(&f.parity, "parity", false,
		"after the run, score the reference text token by token in every engine that supports scoring; "+
			"--parity=false: never (default: only if outputs differ)")
	flags.BoolVar(&f.noCheck, "no-check", false, "do not check the engines' log-probabilities of a short text")
	flags.BoolVar(&f.checkReference, "check-reference", false,
		"check them against llmparity's reference implementation, too: GGUF files of up to 200 million parameters")
	under(flags, "Output", "out quiet json")
	under(flags, "Correctness", "no-check check-reference parity text-of")
	under(flags, "Quality", "quality quality-of")
	f.profileFlags.register(flags)
	f.engineFlags.register(flags, ofPlans)
	annotate(flags, common, "", runCommon)
}

// start carries out a plan, or with --dry-run shows it.
func (f *runFlags) start(c *cobra.Command, p plan.Plan) error {
	if !f.dryRun {
		return f.run(c.Context(), p, c.OutOrStdout(), c.ErrOrStderr())
	}
	_, note, err := f.checks(p)
	if err != nil {
		return err
	}
	return f.dry(c.Context(), p, c.OutOrStdout(), note)
}

// run carries out a plan, or the rest of an interrupted run.
func (f *runFlags) run(ctx context.Context, p plan.Plan, stdout, stderr io.Writer) (err error) {
	profiles, err := f.profiles()
	if err != nil {
		return err
	}
	identity := make(chan record.Tool, 1)
	go func() { identity <- tool() }() // hashes the program
	show := progress.New(stderr, f.quiet)
	defer show.Close()
	result := progress.Line{}
	if f.json {
		show.InJSON(stdout)
		defer func() { show.Done(result.Ended(err, deciding(ctx, err))) }()
	}
	resolver, err := f.resolver(p, false, show.Say, stderr)
	if err != nil {
		return err
	}
	defer resolver.Close()
	if err := f.begin(show, stderr); err != nil { // before anything is downloaded
		return err
	}
	if f.left != "" {
		show.Note(f.left)
	}
	if f.resume != "" && !f.quiet {
		if text, err := whatIsThere(f.resume, resolver.Matrix); err == nil { // the runner reports an error
			show.Note(text)
		}
	}
	checks, note, err := f.checks(p)
	if err != nil {
		return err
	}
	if note != "" {
		show.Note(note)
	}
	resolved, err := f.ready(ctx, resolver, show)
	if err != nil {
		return err
	}
	// Check what the report needs before the run.
	if _, _, err := charts.Libraries(); err != nil {
		return err
	}
	o := f.options(resolved, <-identity, show)
	o.Profiles = profiles
	o.Progress = func(e run.Event) {
		show.Event(e)
		if e.Kind == run.Recording {
			remarkBusy(show, e.Text)
		}
	}
	dir, err := f.measure(ctx, o)
	show.Close()
	if dir == "" {
		return err
	}
	result.Record = dir
	// Show the record even if the run failed.
	say := stdout
	if f.json {
		say = io.Discard
	}
	if ctx.Err() != nil {
		checks = nil
	}
	report, judged, shown := f.concludeRun(dir, checks, say)
	if ctx.Err() != nil {
		fmt.Fprintf(stderr, "to continue: llmparity run --resume %s%s\n", inShell(dir), f.again)
	}
	if shown == nil {
		result.Report = report
	}
	if shown != nil || checks == nil {
		return fault.First(err, shown)
	}
	result.Gated(judged)
	return fault.First(err, judged)
}

// remarkBusy says before the first launch what else uses the machine: a run of many minutes may then decide nothing.
func remarkBusy(show *progress.Progress, dir string) {
	begun, err := record.Scan(dir)
	if err != nil {
		return // it is said when the record is read
	}
	if q := explain.Quiet(begun.Run.Environment); q.Answer == explain.No {
		show.Remark("busy machine", q.Why+"; figures will vary, so close them or expect wide intervals")
	}
}

// concludeRun shows what a run found, writes its report, and judges it by a gate, if there is one.
func (f *runFlags) concludeRun(dir string, checks *gates.Gate, stdout io.Writer) (report string, judged, shown error) {
	s, err := openSides(dir, false)
	if err != nil {
		return "", nil, err
	}
	if len(s.runs) > 1 {
		return f.concludeSides(s, checks, stdout)
	}
	r, compared, shown := conclude(dir, stdout, f.quiet)
	if shown == nil && checks != nil {
		judged = gateRun(r, compared, checks, f.baseline, stdout)
	}
	return filepath.Join(dir, "report.html"), judged, shown
}

// checks returns the gate that judges the run, nil if none does, and what to know about it before the run.
func (f *runFlags) checks(p plan.Plan) (checks *gates.Gate, note string, err error) {
	checks, err = f.over(p.Gate, f.sides != nil || f.baseline != "")
	switch {
	case err != nil || f.sides != nil:
	case p.Gate != nil || f.baseline != "":
		note, err = gate.Ready(checks, f.baseline)
	default:
		if f.judgeFlags.given() {
			note = "nothing is checked: the plan has no gate; --baseline and --against compare by default tolerances"
		}
		return nil, note, nil
	}
	return checks, note, err
}

// options are those of a side of the run. It does not fail without engines that the user did not ask for.
func (f *runFlags) options(resolved *resolve.Resolved, tool record.Tool, show *progress.Progress) run.Options {
	return run.Options{Matrix: resolved.Matrix, Open: resolved.Open, Out: f.out, Tool: tool, Progress: show.Event,
		Strict: f.strict, Optional: func(engine string) bool { return f.byName != nil && !f.byName(engine) },
		Resume: f.resume, RetryFailed: f.retryFailed, AllowChanged: f.allowChanged}
}

// ready resolves a plan, reports what cannot run, and writes defaults into the plan.
func (f *runFlags) ready(ctx context.Context, r *resolve.Resolver, show *progress.Progress) (
	*resolve.Resolved, error) {
	resolved, err := r.Resolve(ctx)
	if err != nil {
		return nil, err
	}
	err = resolved.Ends(f.strict)
	if err == nil || len(resolved.Reasons()) > 1 { // a single reason is the error
		for _, line := range resolved.Lines() {
			show.Note(line)
		}
	}
	if err != nil {
		return nil, err
	}
	if f.resume == "" { // else some of it is done
		all := expected(resolved.Scorings)
		show.Expect(all, len(all) == len(resolved.Scorings))
	}
	s := resolved.First() // setup that can run; its defaults are written into the plan
	if s == nil {
		return resolved, nil
	}
	if s.Plan.ContextNote != "" {
		show.Say("context", fmt.Sprintf("%d tokens %s", s.Plan.Context, s.Plan.ContextNote))
	}
	if len(resolved.Setups) == 1 && len(resolved.Plan.Contexts) == 0 {
		resolved.Plan.Context, resolved.Plan.ContextNote = s.Plan.Context, s.Plan.ContextNote
	}
	f.complete(&resolved.Plan, s.Model)
	return resolved, nil
}

// expected is the time of scoring for the progress, or nothing if some of it is unknown.
func expected(all []resolve.Scoring) (out []progress.Scoring) {
	for _, s := range all {
		if s.Seconds == nil {
			return nil
		}
		out = append(out, progress.Scoring{Setup: s.Setup, Engine: s.Engine,
			Takes: time.Duration(*s.Seconds * float64(time.Second))})
	}
	return out
}

// conclude prints the result of a run, or only the answer if it is quiet, and writes its report.
func conclude(dir string, stdout io.Writer, quiet bool) (*record.Run, *compare.Result, error) {
	r, err := record.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	result := compare.With(comparison(), r)
	show := reports.Table
	if quiet {
		show = reports.Answer
	}
	if err := show(stdout, result); err != nil {
		return nil, nil, err
	}
	const do = "name another folder with --out"
	path, summary := filepath.Join(dir, "report.html"), func(w io.Writer) error { return tables.Summary(w, result) }
	err = reports.File(filepath.Join(dir, "summary.csv"), do, summary)
	if err == nil {
		err = writeHTML(path, do, result, r)
	}
	if err == nil {
		places(stdout, dir, path, result, quiet)
	}
	return r, result, err
}

// profileFlags choose the profiles that a browser records.
type profileFlags struct {
	kinds  map[engine.Profile]*bool
	phases []string
}

// profileKinds are the kinds of profiles, in the order of the help.
var profileKinds = []struct {
	kind engine.Profile
	what string
}{
	{engine.HeapSnapshot, "save a heap snapshot of the page at the end of each phase (.heapsnapshot)"},
	{engine.SamplingProfile, "save an allocation profile of each phase (.heapprofile)"},
	{engine.Trace, "save a trace of each phase (.trace.json)"},
	{engine.CPUProfile, "save a CPU profile of each phase (.cpuprofile)"},
}

func (f *profileFlags) register(flags *pflag.FlagSet) {
	f.kinds = map[engine.Profile]*bool{}
	for _, k := range profileKinds {
		f.kinds[k.kind] = flags.Bool(string(k.kind), false, k.what)
		under(flags, "Profiles for Chrome DevTools", string(k.kind))
	}
	flags.StringSliceVar(&f.phases, "profile-phases", []string{string(record.Load), string(record.Measure)},
		"phases to profile: "+strings.Join(phaseNames(), ", "))
	under(flags, "Profiles for Chrome DevTools", "profile-phases")
}

// profiles returns the profiles that were chosen.
func (f *profileFlags) profiles() (run.Profiles, error) {
	var p run.Profiles
	for _, k := range profileKinds {
		if *f.kinds[k.kind] {
			p.Kinds = append(p.Kinds, k.kind)
		}
	}
	for _, name := range f.phases {
		if !slices.Contains(phaseNames(), name) {
			return p, fault.New(fault.Usage, didYouMean(name, phaseNames()), "--profile-phases: unknown phase %q", name)
		}
		p.Phases = append(p.Phases, record.Phase(name))
	}
	return p, nil
}

// phaseNames are the phases of a launch, in order.
func phaseNames() (names []string) {
	for _, phase := range record.Phases() {
		names = append(names, string(phase))
	}
	return names
}
