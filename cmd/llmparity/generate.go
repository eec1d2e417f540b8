package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/progress"
	"llmparity/internal/record"
	"llmparity/internal/run"
)

// generateFlags are those of run that say which engine generates what.
type generateFlags struct {
	runFlags
	temperature float64
}

func generateCommand() *cobra.Command {
	var f generateFlags
	c := &cobra.Command{
		Use:   "generate --engine NAME",
		Short: "Generate one text in an engine",
		Long: `Generate one text in an engine, and print it with its token counts and times. No template is applied.

This is for a quick look, or to have something to watch (llmparity watch). Use llmparity run to measure.`,
		Example: `  llmparity generate --engine llamacpp --model my.gguf --prompt "Once upon a time" --max-tokens 100
  llmparity generate --engine ollama --ollama-url http://127.0.0.1:11434 --model served:llama3.2:1b`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.generate(c) },
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.engine, "engine", nil, "the engine: "+kinds.All.List())
	flags.StringVar(&f.model, "model", "tiny", modelHelp)
	flags.StringVar(&f.mirror, "mirror", "", mirrorHelp)
	flags.StringArrayVar(&f.prompts, "prompt", nil, "the prompt, raw")
	flags.IntVar(&f.maxTokens, "max-tokens", 64, "tokens to generate at most")
	flags.Float64Var(&f.temperature, "temperature", 0, "0: the likeliest token each time")
	flags.IntVar(&f.context, "context", 0, contextHelp)
	flags.IntVar(&f.threads, "threads", 1, threadsHelp())
	f.engineFlags.register(flags, ofRuns)
	return c
}

func (f *generateFlags) generate(c *cobra.Command) error {
	switch {
	case len(f.engine) != 1:
		return fault.New(fault.Usage, "give one --engine: "+kinds.All.List(), "%d engines are named", len(f.engine))
	case len(f.prompts) > 1:
		return fault.New(fault.Usage, "give one --prompt", "%d prompts are given", len(f.prompts))
	case !(f.temperature >= 0 && f.temperature <= 100):
		return fault.New(fault.Usage, "", "--temperature %g: a number from 0 to 100 is needed", f.temperature)
	}
	p, err := f.plan(c, nil)
	if err != nil {
		return err
	}
	p.Parity = new(false)
	ctx, stdout, stderr := c.Context(), c.OutOrStdout(), c.ErrOrStderr()
	show := progress.New(stderr, false)
	defer show.Close()
	f.strict = true
	r := f.resolver(false, show.Say, stderr)
	defer r.Close()
	resolved, err := f.ready(ctx, r, p, show)
	if err != nil {
		return err
	}
	return f.once(ctx, r.Parts(resolved), resolved.Setups[0].Setup, stdout, stderr)
}

// once opens the engine of a setup, loads its model, generates one text, and prints it and what it took.
func (f *generateFlags) once(ctx context.Context, build func(context.Context, plan.Setup) (run.Setup, func(), error),
	s plan.Setup, stdout, stderr io.Writer) (err error) {
	parts, _, err := build(ctx, s)
	if err != nil {
		return err
	}
	p := &tellingProbe{out: stderr}
	session, err := parts.Engines[0].Open(ctx, p)
	if err != nil {
		return err
	}
	defer func() {
		if closed := session.Close(); err == nil {
			err = closed
		}
	}()
	begin := time.Now()
	if err := session.Load(ctx, parts.Model); err != nil {
		return err
	}
	load := time.Since(begin)
	pieces := 0
	shape := parts.Shapes[0]
	u, err := session.Generate(ctx, engine.Request{Prompt: shape.Prompt, MaxTokens: shape.MaxTokens,
		Temperature: f.temperature},
		func(record.Token) { pieces++ })
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s\n\n", u.Text)
	taken(stdout, p.engine, u, pieces, load)
	return nil
}

// taken prints what a generation took.
func taken(stdout io.Writer, of record.EngineInfo, u record.Usage, pieces int, load time.Duration) {
	fmt.Fprintf(stdout, "%s %s\n", of.Name, of.Version)
	cached := fmt.Sprintf("%d of them from a cache", u.CachedTokens)
	if u.CachedTokens == record.CacheUnknown {
		cached = "the engine does not report how many came from a cache"
	}
	fmt.Fprintf(stdout, "prompt     %d tokens, %s\n", max(u.PromptTokens, len(u.PromptIDs)), cached)
	n := cmp.Or(u.Generated, pieces)
	fmt.Fprintf(stdout, "generated  %d tokens in %d pieces, finish: %s\n", n, pieces, u.Finish)
	fmt.Fprintf(stdout, "load       %s\n", inSeconds(load))
	for _, span := range u.Spans {
		took := span.End.Sub(span.Begin)
		rate := ""
		// with fewer pieces it is not known when tokens came
		if span.Name == record.Decode && n > 1 && took > 0 && 10*pieces >= 9*n {
			rate = fmt.Sprintf(", %.2f tokens/s", float64(n-1)/took.Seconds())
		}
		fmt.Fprintf(stdout, "%-10s %s%s (%s)\n", span.Name, inSeconds(took), rate, span.How)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Reported)) {
		if strings.HasSuffix(name, "_duration") { // in nanoseconds
			fmt.Fprintf(stdout, "reported   %s %s\n", name, inSeconds(time.Duration(u.Reported[name])))
			continue
		}
		fmt.Fprintf(stdout, "reported   %s %g\n", name, u.Reported[name])
	}
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.4g s", d.Seconds()) }

// tellingProbe prints warnings at once, and keeps what the engine is. It samples nothing.
type tellingProbe struct {
	engine.Unmeasured
	out    io.Writer
	engine record.EngineInfo
}

func (p *tellingProbe) Warn(w record.Warning) {
	fmt.Fprintf(p.out, "warning: %s (%s)\n", w.Text, w.Code)
}

func (p *tellingProbe) Event(e record.Event) {
	if e.Engine != nil {
		p.engine = *e.Engine
	}
}
