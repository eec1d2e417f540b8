package main

import (
	"cmp"
	"path/filepath"

	"github.com/spf13/cobra"

	"llmparity/internal/bench/deepen"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/reports"
	"llmparity/reports/flame"
)

// profileOptions are those flags of run that choose what is profiled.
type profileOptions struct {
	runFlags
	before string
}

func profileCommand() *cobra.Command {
	var f profileOptions
	c := &cobra.Command{Use: "profile [PLAN]", Short: "Show which operators and functions take the time",
		Long: `Show which operators and functions take the time of one generation in each engine. A profile slows an
engine down, so nothing of it is a measurement. WebGPU kernels, and operators of Hugging Face and llama.cpp, are timed
one by one; of other engines stacks are sampled with perf.

Docs: docs/howto/profile-an-engine.md`,
		Example: `  llmparity profile --engines webllm,huggingface,llamacpp
  llmparity profile --engines llamacpp --model my.gguf --before results/profile-old`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return f.profile(c, args) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&f.engines, "engines", nil, "engines to profile, one of "+kinds.All.List())
	flags.StringVar(&f.model, "model", "tiny", modelHelp)
	flags.StringArrayVar(&f.prompts, "prompt", nil, "prompt, passed to the model without a template")
	flags.IntVar(&f.maxTokens, "max-tokens", 64, "number of tokens to generate")
	flags.IntVar(&f.context, "context", 0, contextHelp)
	flags.IntVar(&f.threads, "threads", 1, threadsHelp())
	flags.BoolVar(&f.allowFallback, "allow-fallback", false, allowFallbackHelp)
	flags.StringVar(&f.out, "out", "results", "folder for results; each profile gets a subfolder")
	flags.StringVar(&f.before, "before", "", "folder of an earlier profile, with which flame graphs are compared")
	f.engineFlags.register(flags, ofRuns)
	return c
}

func (f *profileOptions) profile(c *cobra.Command, args []string) (err error) {
	p, err := f.plan(c, args)
	if err != nil {
		return err
	}
	for _, k := range kinds.All {
		if d, ok := f.chosen().Config(k).(interface{ Deepen() }); ok {
			d.Deepen()
		}
	}
	resolved, parts, done, err := f.unmeasured(c, p)
	if err != nil {
		return err
	}
	defer done()
	folder, err := deepen.NewFolder(f.out, f.before, flame.Page(reports.Style()))
	if err != nil {
		return err
	}
	cell := &resolved.Cells[0]
	for _, e := range parts.Engines {
		c.PrintErrf("%s: profiling\n", e.Name())
		// The others go on if one fails.
		err = cmp.Or(err, folder.Profile(c.Context(), e, parts.Of(e),
			engine.Request{Prompt: cell.Prompt, MaxTokens: cell.MaxTokens}, c.ErrOrStderr(), f.allowFallback))
	}
	if err := cmp.Or(err, folder.Write(c.OutOrStdout())); err != nil {
		return err
	}
	c.Printf("folder   %s\n", filepath.Clean(folder.Path))
	return nil
}
