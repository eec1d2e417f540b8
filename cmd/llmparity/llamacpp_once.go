package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
)

// llamacppOnce is one generation in llama.cpp's one-shot program.
type llamacppOnce struct {
	model, prompt, program   string
	tokens, threads, context int
	temperature              float64
}

func llamacppCommand() *cobra.Command {
	var o llamacppOnce
	c := &cobra.Command{
		Use:   "llamacpp --model FILE.gguf",
		Short: "Generate one text in llama.cpp, and say what it took",
		Long: `Generate one text in llama.cpp's one-shot program (llama-completion; of older versions llama-cli or main), in a process of its own: raw
(no template is applied), greedy at temperature 0, until the model ends it or the number of tokens is reached. The text is printed as it
comes, and behind it the counts of tokens and the times, ours and the program's own. The KV cache is of f32 and flash attention is off, as
in llmparity run, so that both say the same; the program's own defaults are f16 and its choice.

This is for a quick look, or for something to watch (llmparity watch --name llama-completion). What is to be compared is measured by
llmparity run --engines llamacpp-oneshot,llamacpp, in launches that are repeated.`,
		Example: `  llmparity llamacpp --model my.gguf --prompt "Once upon a time" --n-predict 100`,
		Args:    arguments(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr()) },
	}
	flags := c.Flags()
	flags.StringVar(&o.model, "model", "", "a GGUF file, tiny or smollm2")
	flags.StringVar(&o.prompt, "prompt", "The quick brown fox jumps over the lazy dog.", "the prompt, raw")
	flags.IntVar(&o.tokens, "n-predict", 50, "tokens to generate at most")
	flags.Float64Var(&o.temperature, "temperature", 0, "0: the likeliest token each time")
	flags.StringVar(&o.program, "llama-cli-path", "", "the program: llama-completion, or an older llama-cli or main "+
		"(default: $LLMPARITY_LLAMA_CLI, else PATH, else the one that scripts/setup llamacpp-tools built)")
	flags.IntVar(&o.threads, "n-threads", 0, "threads; 0: as many as llama.cpp likes")
	flags.IntVar(&o.context, "n-ctx", 512, "the context window in tokens; 0: the model's own")
	return c
}

func (o llamacppOnce) run(ctx context.Context, stdout, stderr io.Writer) error {
	for _, c := range []struct {
		wrong bool
		text  string
	}{
		{o.tokens < 1, fmt.Sprintf("--n-predict %d: at least 1 is needed", o.tokens)},
		{!(o.temperature >= 0 && o.temperature <= 100), fmt.Sprintf("--temperature %g: a number from 0 to 100 is needed", o.temperature)},
		{o.prompt == "", "--prompt: it is empty"},
		{o.threads < 0, fmt.Sprintf("--n-threads %d: a positive number is needed, or 0: llama.cpp's choice", o.threads)},
		{o.context < 0 || o.context > math.MaxInt32, fmt.Sprintf("--n-ctx %d: a positive number that llama.cpp can hold is needed, or 0: the model's own", o.context)},
	} {
		if c.wrong {
			return fault.New(fault.Usage, "", "%s", c.text)
		}
	}
	path, err := o.path()
	if err != nil {
		return err
	}
	e := llamacpp.NewOneShot(llamacpp.Config{CLI: o.program, Cache: cache.Dir(os.Getenv), Threads: o.threads, OwnThreads: true})
	m := engine.Model{Path: path, Model: record.Model{Name: filepath.Base(path), Format: "gguf", Context: o.context}}
	p := &tellingProbe{out: stderr}
	pieces := 0
	u, err := e.Run(ctx, m, engine.Request{Prompt: o.prompt, MaxTokens: o.tokens, Temperature: o.temperature}, p, func(text string) {
		pieces++
		fmt.Fprint(stdout, text)
	})
	if pieces > 0 {
		fmt.Fprint(stdout, "\n\n")
	}
	if err != nil {
		return err
	}
	taken(stdout, p.engine, u, pieces, nil)
	return nil
}

// path is the model's file.
func (o llamacppOnce) path() (string, error) {
	switch {
	case o.model == "":
		return "", fault.New(fault.Usage, "give --model FILE.gguf", "no --model is named")
	case o.model == "tiny":
		m, err := tinyModel(0)
		return m.Path, err
	case o.model == "smollm2":
		return smolLM2Path()
	case strings.HasPrefix(o.model, servedPrefix):
		return "", fault.New(fault.Usage, "give --model FILE.gguf", "%s is no file, and llama.cpp's one-shot program asks no server", o.model)
	}
	return o.model, nil
}
