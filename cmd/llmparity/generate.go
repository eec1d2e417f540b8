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

	"llmparity/internal/bench/progress"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// generateFlags are those flags of run that choose engine, model and prompt.
type generateFlags struct {
	runFlags
	temperature float64
}

func generateCommand() *cobra.Command {
	var f generateFlags
	c := &cobra.Command{
		Use:   "generate --engine NAME",
		Short: "Generate one text with one engine",
		Long: `Generate one text with one engine, and print it with token counts and times. No template is applied.
To measure, use llmparity run.`,
		Example: `  llmparity generate --engine llamacpp --model my.gguf --prompt "Once upon a time" --max-tokens 100
  llmparity generate --engine ollama --ollama-url http://127.0.0.1:11434 --model served:llama3.2:1b`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.generate(c) },
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.engine, "engine", nil, "engine: "+kinds.All.List())
	flags.StringVar(&f.model, "model", "tiny", modelHelp)
	flags.StringVar(&f.chosen().Settings.Mirror, "mirror", "", mirrorHelp)
	flags.StringArrayVar(&f.prompts, "prompt", nil, "prompt, passed to the model without a template")
	flags.IntVar(&f.maxTokens, "max-tokens", 64, "maximum number of tokens to generate")
	flags.Float64Var(&f.temperature, "temperature", 0, "sampling temperature; 0: always the most likely token")
	flags.IntVar(&f.context, "context", 0, contextHelp)
	flags.IntVar(&f.threads, "threads", 1, threadsHelp())
	flags.BoolVar(&f.allowFallback, "allow-fallback", false, allowFallbackHelp)
	f.engineFlags.register(flags, ofRuns)
	return c
}

func (f *generateFlags) generate(c *cobra.Command) error {
	switch {
	case len(f.engine) != 1:
		return fault.New(fault.Usage, "use one of "+kinds.All.List(), "--engine: need one engine, got %d",
			len(f.engine))
	case len(f.prompts) > 1:
		return fault.New(fault.Usage, "", "--prompt: need one prompt, got %d", len(f.prompts))
	case !(f.temperature >= 0 && f.temperature <= 100):
		return fault.New(fault.Usage, "", "--temperature %g is out of range; use 0 to 100", f.temperature)
	}
	p, err := f.plan(c, nil)
	if err != nil {
		return err
	}
	p.Parity, p.Check = new(false), new(false)
	ctx, stderr := c.Context(), c.ErrOrStderr()
	show := progress.New(stderr, false)
	defer show.Close()
	f.strict = true
	r, err := f.resolver(p, false, show.Say, stderr)
	if err != nil {
		return err
	}
	defer r.Close()
	resolved, err := f.ready(ctx, r, show)
	if err != nil {
		return err
	}
	parts, err := resolved.Open(ctx, resolved.Setups[0])
	if err != nil {
		return err
	}
	return f.once(ctx, parts, &resolved.Cells[0], c.OutOrStdout(), stderr)
}

// once opens an engine, loads its model, generates one text, and prints it with counts and times.
func (f *generateFlags) once(ctx context.Context, parts run.Parts, cell *record.Cell, stdout, stderr io.Writer) (
	err error) {
	p := &tellingProbe{out: stderr}
	session, err := parts.Engines[0].Open(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, session.Close()) }()
	begin := time.Now()
	if err := session.Load(ctx, parts.Of(parts.Engines[0])); err != nil {
		return err
	}
	load := time.Since(begin)
	if err := p.asked(f.allowFallback); err != nil {
		return err
	}
	pieces := 0
	u, err := session.Generate(ctx, engine.Request{Prompt: cell.Prompt, MaxTokens: cell.MaxTokens,
		Temperature: f.temperature}, func(record.Token) { pieces++ })
	if err = cmp.Or(err, p.asked(f.allowFallback)); err != nil { // what it computes with, some engines know now
		return err
	}
	fmt.Fprintf(stdout, "%s\n\n", u.Text)
	taken(stdout, p.engine, u, pieces, load)
	return nil
}

// taken prints token counts and times of a generation.
func taken(stdout io.Writer, of record.EngineInfo, u record.Usage, pieces int, load time.Duration) {
	fmt.Fprintf(stdout, "%s %s\n", of.Name, of.Version)
	cached := fmt.Sprintf("%d cached", u.CachedTokens)
	if u.CachedTokens == record.CacheUnknown {
		cached = "cached tokens not reported"
	}
	fmt.Fprintf(stdout, "prompt     %d tokens, %s\n", max(u.PromptTokens, len(u.PromptIDs)), cached)
	n := cmp.Or(u.Generated, pieces)
	fmt.Fprintf(stdout, "generated  %d tokens in %d pieces, finish reason: %s\n", n, pieces, u.Finish)
	fmt.Fprintf(stdout, "load       %s\n", inSeconds(load))
	for _, span := range u.Spans {
		took := span.End.Sub(span.Begin)
		rate := ""
		// with fewer pieces the times of tokens are unknown
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

// tellingProbe prints warnings, and keeps the engine and its device. It samples nothing.
type tellingProbe struct {
	engine.Unmeasured
	out    io.Writer
	engine record.EngineInfo
	device *record.Device // not yet judged; nil: none
	ran    []ran.Row      // not yet judged
}

// asked judges what the engine has reported of its device and of what else was asked for.
func (p *tellingProbe) asked(allowed bool) error {
	if p.device != nil {
		w, err := engine.Asked(*p.device, allowed)
		if err != nil {
			return err
		}
		if w != nil {
			p.Warn(*w)
		}
	}
	warnings, err := engine.AskedAlso(p.ran, allowed)
	for _, w := range warnings {
		p.Warn(w)
	}
	p.device, p.ran = nil, nil
	return err
}

func (p *tellingProbe) Warn(w record.Warning) {
	fmt.Fprintf(p.out, "warning: %s (%s)\n", w.Text, w.Code)
}

func (p *tellingProbe) Event(e record.Event) {
	if e.Engine != nil {
		p.engine = *e.Engine
	}
	if e.Device != nil {
		p.device = e.Device
	}
	p.ran = append(p.ran, e.Ran...)
}
