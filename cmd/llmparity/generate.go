package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"llmparity/internal/bench/once"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/progress"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
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

func (f *generateFlags) generate(c *cobra.Command) (err error) {
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
	resolved, parts, done, err := f.unmeasured(c, p)
	if err != nil {
		return err
	}
	defer done()
	s, err := once.Open(c.Context(), parts.Engines[0], parts.Of(parts.Engines[0]), c.ErrOrStderr(),
		f.allowFallback)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, s.Close()) }()
	cell := &resolved.Cells[0]
	r := engine.Request{Prompt: cell.Prompt, MaxTokens: cell.MaxTokens, Temperature: f.temperature}
	return s.Text(c.Context(), r, c.OutOrStdout())
}

// unmeasured resolves a plan of one setup, of which nothing is measured, and returns its engines until done is called.
func (f *runFlags) unmeasured(c *cobra.Command, p plan.Plan) (resolved *resolve.Resolved, parts run.Parts,
	done func(), err error) {
	p.Parity, p.Check = new(false), new(false)
	show := progress.New(c.ErrOrStderr(), false)
	f.strict = true
	r, err := f.resolver(p, false, show.Say, c.ErrOrStderr())
	if err != nil {
		show.Close()
		return nil, parts, nil, err
	}
	done = func() { r.Close(); show.Close() }
	if resolved, err = f.ready(c.Context(), r, show); err == nil {
		parts, err = resolved.Open(c.Context(), resolved.Setups[0])
	}
	if err != nil {
		done()
	}
	return resolved, parts, done, err
}
