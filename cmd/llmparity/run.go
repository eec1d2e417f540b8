package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"llmparity/assets/echarts"
	"llmparity/browser"
	"llmparity/compare"
	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/run"
	"llmparity/reports"
)

// runFlags are the flags of run that change a plan.
type runFlags struct {
	engines     []string
	engine      []string // one a flag: a name that has commas in it is one
	model       string
	prompts     []string
	maxTokens   int
	repetitions int
	isolation   string
	out         string
	quiet       bool
	noCheckOOM  bool
	parity      bool
	reference   string
	context     int
	thread      string
	watchdog    time.Duration
	mirror      string // of the catalogue's addresses
	bundleFlags
	engineFlags
	profileFlags
}

func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [PLAN]",
		Short: "Carry out a plan, record it, and report it",
		Long: `Carry out a plan (a YAML file; without one, the built-in plan: the tiny model in WebLLM and in llama.cpp). Everything that is
measured is written to a folder as it happens; at the end there are a table and, in that folder, report.html.`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := f.plan(c, args)
			if err != nil {
				return err
			}
			return f.run(c.Context(), p, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&f.engines, "engines", nil, "engines, separated by commas, in place of the plan's: "+engineList())
	flags.StringArrayVar(&f.engine, "engine", nil, "an engine, whatever its name has in it, such as "+
		"'exec:./my-engine --its-flag', a program of your own that speaks docs/protocol.md; may be given several times. "+
		"It adds to --engines, and with or without those stands for the plan's")
	flags.StringVar(&f.model, "model", "",
		"a GGUF file, tiny, smollm2, a WebLLM package's folder, an id of WebLLM's catalogue (llmparity model list), or "+
			"served:NAME of a server")
	flags.StringVar(&f.mirror, "mirror", "",
		"where a model of the catalogue is fetched from: an address or a folder with the public addresses' layout")
	flags.IntVar(&f.context, "context", 0, contextHelp)
	flags.StringArrayVar(&f.prompts, "prompt", nil, "the prompt, raw; may be given several times")
	flags.IntVar(&f.maxTokens, "max-tokens", 0, "tokens to generate")
	flags.IntVar(&f.repetitions, "repetitions", 0, "launches of each engine that count")
	flags.StringVar(&f.isolation, "isolation", plan.OfLaunch,
		"what a repetition has of its own: launch (a fresh process, and the model loaded anew; engines take turns) or "+
			"reused (nothing: it goes on in the launch of the one before it; one engine after the other)")
	flags.StringVar(&f.out, "out", "results", "the folder in which the run's folder is made")
	flags.StringVar(&f.thread, "thread", "page", "where WebLLM runs: page (the page's own thread) or worker (a dedicated worker)")
	flags.DurationVar(&f.watchdog, "watchdog", engine.Watchdog, "how long that thread, or an engine of exec:, may give no "+
		"sign of life")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress, only the result")
	flags.BoolVar(&f.noCheckOOM, "no-check-oom", false, "launch what would run out of memory, by what is foretold of it and what is free, too")
	flags.BoolVar(&f.parity, "parity", false, "when all is measured, have every engine that can score the reference's text, token by token: what "+
		"it would have chosen, and how likely that was; --parity=false: never (default: where engines' own texts part)")
	flags.StringVar(&f.reference, "reference", "", "the engine whose text that is (default: the first native one that tells token ids)")
	flags.IntVar(&f.threads, "threads", 1, "threads of llama.cpp and Ollama")
	f.engineFlags.register(flags)
	f.packageFlags.register(flags)
	f.bundleFlags.register(flags)
	f.profileFlags.register(flags)
	flags.StringVar(&f.modelLib, "model-lib", "",
		"a model library for WebLLM, by its file or https address, in place of one that is compiled here")
	return c
}

func (f *runFlags) run(ctx context.Context, p plan.Plan, stdout, stderr io.Writer) error {
	profiles, err := f.profiles()
	if err != nil {
		return err
	}
	identity := make(chan record.Tool, 1)
	go func() { identity <- tool() }() // it reads the whole program
	show := newProgress(stderr, f.quiet)
	defer show.close()
	say := func(what string) { show.event(run.Event{Kind: run.Preparing, Engine: browser.Name, Text: what}) }
	if err := f.servable(p); err != nil {
		return err
	}
	if f.bundle, err = f.find(ctx, p.Engines, say); err != nil {
		return err
	}
	model, err := f.findModel(ctx, p.Model, max(p.Context, 0), say)
	if err != nil {
		return err
	}
	if err := chooseContext(&p, &model); err != nil {
		return err
	}
	if p.ContextNote != "" {
		show.event(run.Event{Kind: run.Preparing, Engine: "context", Text: fmt.Sprintf("%d tokens %s", p.Context, p.ContextNote)})
	}
	f.complete(&p, model)
	if err := promptFaults(model, p.Prompts); err != nil {
		return err
	}
	known, err := expected(model, p)
	if err != nil {
		return err
	}
	// What the report needs is looked for before the run, not after it.
	if _, err := echarts.Script(); err != nil {
		return err
	}
	engines := f.build(p.Engines)
	defer closeEngines(engines, stderr)
	told := newForetelling(engines, model)
	dir, err := run.Do(ctx, run.Options{Plan: p, Out: f.out, Tool: <-identity, Progress: show.event, Profiles: profiles,
		Parts: run.Parts{Engines: engines, Model: model, Expected: known, Unsure: unsure(p), Pieces: pieces(model), Foretell: told.foretell,
			Judge: told.judge, Reference: func() (string, error) { return f.referenceOf(p), f.referenceFault(p) }}})
	show.close()
	if dir == "" {
		return err
	}
	// Whatever happened, what was recorded is shown; the run's own error is the one to tell.
	if shown := conclude(dir, stdout); err == nil {
		err = shown
	}
	return err
}

// closeEngines has engines give up what they keep from launch to launch. What can't be is said: the run has its record by now.
func closeEngines(engines []engine.Engine, w io.Writer) {
	for _, e := range engines {
		c, ok := e.(io.Closer)
		if !ok {
			continue
		}
		if err := c.Close(); err != nil {
			fmt.Fprintf(w, "warning: %v\n", err)
		}
	}
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
