package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"llmparity/assets/charts"
	"llmparity/compare"
	"llmparity/compare/gate"
	"llmparity/internal/cache"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/progress"
	"llmparity/internal/record"
	"llmparity/internal/resolve"
	"llmparity/internal/run"
	"llmparity/reports"
)

// runFlags are the flags of run: most of them change a plan.
type runFlags struct {
	engines    []string
	engine     []string // one a flag: a name that has commas in it is one
	model      string
	prompts    []string
	maxTokens  int
	out        string
	quiet      bool
	json       bool
	dryRun     bool
	strict     bool
	baseline   string
	against    string
	other      *otherSide // which the run takes turns with; nil: it is made alone
	noCheckOOM bool
	parity     bool
	context    int
	mirror     string                   // of the catalogue's addresses
	byName     func(engine string) bool // whether the user asked for it; nil: for all
	resumeFlags
	presetFlags
	axisFlags
	scheduleFlags
	engineFlags
	profileFlags
	judgeFlags
}

const (
	modelHelp = "a GGUF file, tiny, smollm2, a WebLLM package's folder, an id of WebLLM's catalogue (llmparity model list), or " +
		"served:NAME of a server"
	mirrorHelp = "where a model of the catalogue is fetched from: an address or a folder with the public addresses' layout"
)

func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [PLAN]",
		Short: "Carry out a plan, record it, and report it",
		Long: `Carry out a plan (a YAML file; without one, the built-in plan: the tiny model in WebLLM and in llama.cpp). Everything that is
measured is written to a folder as it happens; at the end there are a table and, in that folder, report.html.

Flags that take lists, with commas or with spaces, are a plan's axes: every combination of their values is measured. --dry-run shows
them, with what each is likely to take; what can't run here is said before anything is launched. A run that was interrupted
is resumed by --resume. --against measures another plan in turns with this one, and gates the difference. docs/howto/write-a-plan.md has
plans' fields, ` + "`llmparity plan init`" + ` writes one to start from.`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if f.resume != "" {
				return f.resumeRun(c, args)
			}
			if c.Flags().Changed("retry-failed") || c.Flags().Changed("allow-changed") {
				return fault.New(fault.Usage, "add --resume DIR",
					"--retry-failed and --allow-changed are for runs that are gone on with")
			}
			p, err := f.plan(c, args)
			if err == nil {
				f.other, err = f.opposite(c)
			}
			if err != nil {
				return err
			}
			if f.dryRun {
				return f.dryBoth(c.Context(), p, c.OutOrStdout())
			}
			return f.run(c.Context(), p, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.register(c)
	return c
}

func (f *runFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.engines, "engines", nil, "engines, separated by commas, in place of the plan's: "+
		kinds.All.List())
	flags.StringArrayVar(&f.engine, "engine", nil, "an engine, whatever its name has in it, such as "+
		"'exec:./my-engine --its-flag', a program of your own that speaks the protocol in docs/howto/add-an-engine.md; may be given several times. "+
		"It adds to --engines, and with or without those stands for the plan's")
	flags.StringVar(&f.model, "model", "", modelHelp)
	flags.StringVar(&f.mirror, "mirror", "", mirrorHelp)
	flags.IntVar(&f.context, "context", 0, contextHelp)
	flags.StringArrayVar(&f.prompts, "prompt", nil, "the prompt, raw; may be given several times")
	flags.IntVar(&f.maxTokens, "max-tokens", 0, "tokens to generate")
	flags.StringVar(&f.out, "out", "results", "the folder in which the run's folder is made")
	flags.StringVar(&f.out, "output-dir", "results", "the same as --out")
	flags.BoolVar(&f.dryRun, "dry-run", false,
		"launch nothing: show the cells, what they are likely to take, what would be fetched, and what is missing here")
	flags.BoolVar(&f.strict, "strict", false,
		"launch nothing if any cell can't run here")
	flags.StringVar(&f.baseline, "baseline", "",
		"the run that the plan's gate compares with: a saved name (llmparity baseline list) or a run's folder")
	f.judgeFlags.register(flags)
	flags.StringVar(&f.against, "against", "", againstHelp)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress, only the result")
	flags.BoolVar(&f.json, "json", false,
		"progress and the result as lines of JSON on standard output (llmparity schema events); with --dry-run one document")
	flags.BoolVar(&f.noCheckOOM, "no-check-oom", false,
		"launch what would run out of memory, by what is foretold of it and what is free, too")
	flags.BoolVar(&f.parity, "parity", false,
		"when all is measured, have every engine that can score the reference's text, token by token: what "+
			"it would have chosen, and how likely that was; --parity=false: never (default: where engines' own texts part)")
	flags.IntVar(&f.threads, "threads", 1, threadsHelp())
	f.resumeFlags.register(flags)
	f.presetFlags.register(flags)
	f.axisFlags.register(flags)
	f.scheduleFlags.register(flags)
	f.engineFlags.register(flags, ofRuns)
	f.profileFlags.register(flags)
}

// run carries out a plan, or what is missing of one that was begun.
func (f *runFlags) run(ctx context.Context, p plan.Plan, stdout, stderr io.Writer) (err error) {
	profiles, err := f.profiles()
	if err != nil {
		return err
	}
	identity := make(chan record.Tool, 1)
	go func() { identity <- tool() }() // it reads the whole program
	show := progress.New(stderr, f.quiet)
	defer show.Close()
	result := progress.Line{}
	if f.json {
		show.InJSON(stdout)
		defer func() { show.Done(result.Ended(err, deciding(ctx, err))) }()
	}
	r := f.resolver(false, show.Say, stderr)
	defer r.Close()
	if f.left != "" {
		show.Note(f.left)
	}
	if f.resume != "" && !f.quiet {
		if text, err := whatIsThere(f.resume, p); err == nil { // what is wrong with the folder the runner says
			show.Note(text)
		}
	}
	resolved, err := f.ready(ctx, r, p, show)
	if err != nil {
		return err
	}
	p = resolved.Plan
	// What the report needs is looked for before the run, not after it.
	if _, _, err := charts.Libraries(); err != nil {
		return err
	}
	checks, err := f.over(p.Gate)
	if err == nil && f.other == nil {
		var note string
		if note, err = gate.Ready(checks, f.baseline); note != "" {
			show.Note(note)
		}
	}
	if err != nil {
		return err
	}
	dir, err := f.measure(ctx, run.Options{Plan: p, Setups: r.Parts(resolved), Out: f.out, Tool: <-identity,
		Progress: show.Event, Profiles: profiles, Strict: f.strict, Optional: f.optional,
		Resume: f.resume, RetryFailed: f.retryFailed, AllowChanged: f.allowChanged}, show, stderr)
	show.Close()
	if dir == "" {
		return err
	}
	if ctx.Err() != nil {
		fmt.Fprintf(stderr, "what is missing is measured by: llmparity run --resume %s\n", dir)
	}
	result.Record = dir
	// Whatever happened, what was recorded is shown; the run's own error is the one to tell.
	say := stdout
	if f.json {
		say = io.Discard
	}
	shown := conclude(dir, say)
	if shown == nil {
		result.Report = filepath.Join(dir, "report.html")
	}
	if shown != nil || ctx.Err() != nil || p.Gate == nil && f.baseline == "" && f.other == nil {
		return fault.First(err, shown)
	}
	notes, judged := f.other.untested(dir)
	if judged == nil {
		judged = gateRun(dir, checks, f.baseline, say, notes...)
	}
	result.Gated(judged)
	return fault.First(err, judged)
}

// optional tells of an engine that the user did not ask for it: that it can't run fails nothing.
func (f *runFlags) optional(engine string) bool { return f.byName != nil && !f.byName(engine) }

// ready resolves a plan, says what can't run, and has the plan say what was chosen.
func (f *runFlags) ready(ctx context.Context, r *resolve.Resolver, p plan.Plan, show *progress.Progress) (
	*resolve.Plan, error) {
	resolved, err := r.Resolve(ctx, p)
	if err != nil {
		return nil, err
	}
	err = resolved.Ends(f.strict)
	if err == nil || len(resolved.Reasons()) > 1 { // one reason is the error itself
		for _, line := range resolved.Lines() {
			show.Note(line)
		}
	}
	if err != nil {
		return nil, err
	}
	f.completeAll(resolved, show)
	return resolved, nil
}

// conclude shows a run that has just ended: the table, and report.html in its folder.
func conclude(dir string, stdout io.Writer) error {
	r, err := record.Open(dir)
	if err != nil {
		return err
	}
	result := compare.Runs(r)
	if err := reports.Table(stdout, result); err != nil {
		return err
	}
	if err := writeSummary(dir, result); err != nil {
		return err
	}
	path := filepath.Join(dir, "report.html")
	if err := writeHTML(path, "name another folder with --out", result, r); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nReport: %s\nRecord: %s\n", path, dir)
	return nil
}

// tool identifies this program in the record.
func tool() record.Tool {
	t := record.Tool{Version: "devel", GoOS: runtime.GOOS, GoArch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		t.Version = info.Main.Version
	}
	if path, err := os.Executable(); err == nil {
		if sum, err := cache.HashFile(path); err == nil {
			t.SHA256 = sum
		}
	}
	return t
}
