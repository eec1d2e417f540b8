package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/native/ollama"
)

// ollamaOnce is one generation in Ollama.
type ollamaOnce struct {
	model, prompt, url, program string
	tokens, threads, context    int
	temperature                 float64
	start                       bool
}

func ollamaCommand() *cobra.Command {
	var o ollamaOnce
	c := &cobra.Command{
		Use:   "ollama --model NAME|FILE.gguf",
		Short: "Generate one text in Ollama, and say what it took",
		Long: `Generate one text in Ollama: raw (no template is applied), greedy at temperature 0, without penalties. The text is printed, and
behind it the counts of tokens and the times, ours and Ollama's own. A GGUF file is made a model of Ollama's and removed afterwards.

This is for a quick look, or for something to watch (llmparity watch --name ollama). What is to be compared is measured by
llmparity run --engines ollama,llamacpp, in launches that are repeated.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr()) },
	}
	flags := c.Flags()
	flags.StringVar(&o.model, "model", "", "a model of Ollama's, such as llama3.2:1b; or a GGUF file, tiny or smollm2")
	flags.StringVar(&o.prompt, "prompt", "The quick brown fox jumps over the lazy dog.", "the prompt, raw")
	flags.IntVar(&o.tokens, "max-tokens", 50, "tokens to generate at most")
	flags.Float64Var(&o.temperature, "temperature", 0, "0: the likeliest token each time")
	flags.StringVar(&o.url, "base-url", ollama.DefaultURL, "where Ollama listens")
	flags.BoolVar(&o.start, "start", false, "start an Ollama for it, with a store of its own, in place of one that runs; takes a GGUF file")
	flags.StringVar(&o.program, "ollama", "", "the ollama to start (default: $LLMPARITY_OLLAMA, else PATH, else the one that scripts/setup ollama built)")
	flags.IntVar(&o.threads, "n-threads", 0, "threads; 0: as many as Ollama likes")
	flags.IntVar(&o.context, "n-ctx", 0, "the context window in tokens; 0: what its maker set, else the model's own, 4096 at most")
	c.MarkFlagsMutuallyExclusive("start", "base-url")
	return c
}

func (o ollamaOnce) run(ctx context.Context, stdout, stderr io.Writer) error {
	m, err := o.find()
	if err != nil {
		return err
	}
	switch {
	case o.tokens < 1:
		return fault.New(fault.Usage, "", "--max-tokens %d: at least 1 is needed", o.tokens)
	case !(o.temperature >= 0) || math.IsInf(o.temperature, 0):
		return fault.New(fault.Usage, "", "--temperature %g: 0 or more is needed", o.temperature)
	case o.threads < 0:
		return fault.New(fault.Usage, "", "--n-threads %d: at least 1 is needed, or 0 for as many as Ollama likes", o.threads)
	case o.context < 0:
		return fault.New(fault.Usage, "", "--n-ctx %d: a number of tokens is needed, or 0 for the model's own", o.context)
	case o.prompt == "":
		return fault.New(fault.Usage, "", "--prompt: it is empty")
	case o.start && m.Format == record.Served:
		return fault.New(fault.Usage, "give a GGUF file, or leave --start out", "%s is no file, and an Ollama that is started knows no model", o.model)
	case o.program != "" && !o.start:
		return fault.New(fault.Usage, "add --start", "--ollama names a program to start, and none is to be started")
	}
	config := ollama.Config{Path: o.program, Cache: cache.Dir(os.Getenv), URL: o.url, Threads: o.threads}
	if o.start {
		config.URL = ""
	}
	e := ollama.New(config)
	if err := e.Check(ctx, m); err != nil {
		return o.advise(err)
	}
	return once(ctx, e, m, engine.Request{Prompt: o.prompt, MaxTokens: o.tokens, Temperature: o.temperature}, stdout, stderr)
}

// advise says how to come by a server where there is none.
func (o ollamaOnce) advise(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.ServerUnreachable && !o.start && strings.Contains(f.Do, "ollama serve") {
		return fault.New(f.Kind, "start one with `ollama serve`, or add --start and give a GGUF file", "%s", f.What)
	}
	return err
}

// find tells a file from a name of Ollama's.
func (o ollamaOnce) find() (engine.Model, error) {
	path, err := o.model, error(nil)
	switch o.model {
	case "":
		err = fault.New(fault.Usage, "give --model NAME, or --model FILE.gguf", "no --model is named")
	case "tiny":
		var m engine.Model
		m, err = tinyModel(0)
		path = m.Path
	case "smollm2":
		path, err = smolLM2Path()
	}
	if err != nil {
		return engine.Model{}, err
	}
	m := engine.Model{Path: path, Model: record.Model{Name: filepath.Base(path), Format: "gguf", Context: o.context}}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !strings.EqualFold(filepath.Ext(path), ".gguf") {
		m = engine.Model{Model: record.Model{Name: strings.TrimPrefix(o.model, servedPrefix), Format: record.Served, Context: o.context}}
	}
	return m, nil
}

// once opens an engine, loads a model, generates one text, and prints it and what it took.
func once(ctx context.Context, e engine.Engine, m engine.Model, r engine.Request, stdout, stderr io.Writer) (err error) {
	p := &tellingProbe{out: stderr}
	s, err := e.Open(ctx, p)
	if err != nil {
		return err
	}
	defer func() {
		if closed := s.Close(); err == nil {
			err = closed
		}
	}()
	begin := time.Now()
	if err := s.Load(ctx, m); err != nil {
		return err
	}
	load := time.Since(begin)
	pieces := 0
	u, err := s.Generate(ctx, r, func(record.Token) { pieces++ })
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s\n\n", u.Text)
	taken(stdout, p.engine, u, pieces, &load)
	return p.says(ctx, stdout)
}

// taken prints what a generation took; load is nil where there was none before it.
func taken(stdout io.Writer, of record.EngineInfo, u record.Usage, pieces int, load *time.Duration) {
	fmt.Fprintf(stdout, "%s %s\n", of.Name, of.Version)
	cached := fmt.Sprintf("%d of them from a cache", u.CachedTokens)
	if u.CachedTokens == record.CacheUntold {
		cached = "how many of them came from a cache is not told"
	}
	fmt.Fprintf(stdout, "prompt     %d tokens, %s\n", max(u.PromptTokens, len(u.PromptIDs)), cached)
	n := cmp.Or(u.Generated, pieces)
	fmt.Fprintf(stdout, "generated  %d tokens in %d pieces, finish: %s\n", n, pieces, u.Finish)
	if load != nil {
		fmt.Fprintf(stdout, "load       %s\n", inSeconds(*load))
	}
	for _, span := range u.Spans {
		took := span.End.Sub(span.Begin)
		rate := ""
		if span.Name == record.Decode && n > 1 && took > 0 && 10*pieces >= 9*n { // of sparse pieces it is not known when tokens came
			rate = fmt.Sprintf(", %.2f tokens/s", float64(n-1)/took.Seconds())
		}
		fmt.Fprintf(stdout, "%-10s %s%s (%s)\n", span.Name, inSeconds(took), rate, span.How)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Reported)) {
		if strings.HasSuffix(name, "_duration") { // in nanoseconds
			fmt.Fprintf(stdout, "its own    %s %s\n", name, inSeconds(time.Duration(u.Reported[name])))
			continue
		}
		fmt.Fprintf(stdout, "its own    %s %g\n", name, u.Reported[name])
	}
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.4g s", d.Seconds()) }

// tellingProbe says warnings at once, and keeps what the engine is.
type tellingProbe struct {
	out    io.Writer
	engine record.EngineInfo
	own    sample.Source // nil: there is none
}

// says prints what Ollama says of the model's memory. That it can't be had is no fault of the generation's.
func (p *tellingProbe) says(ctx context.Context, w io.Writer) error {
	if p.own == nil {
		return nil
	}
	r := record.NewSample()
	if err := p.own.Read(ctx, &r); err != nil {
		return ctx.Err()
	}
	size := map[string]float64{}
	for _, v := range r.Values {
		size[v.Name] = v.Value
	}
	if all, ok := size["size_bytes"]; ok {
		fmt.Fprintf(w, "Ollama says: size %.1f MiB, of it %.1f MiB on GPUs (its own estimate, not measured)\n", all/record.MiB,
			size["size_vram_bytes"]/record.MiB)
	}
	return nil
}

// Attach reads nothing: one generation is watched from outside. What Ollama itself says is asked for at the end.
func (p *tellingProbe) Attach(s sample.Source) func() {
	if s.Describe().Method == ollama.MethodAPIPS {
		p.own = s
	}
	return func() {
		if c, ok := s.(io.Closer); ok {
			_ = c.Close() // it was never read
		}
	}
}

func (*tellingProbe) Span(record.Span)          {}
func (*tellingProbe) Log(string) io.WriteCloser { return discard{io.Discard} }

func (p *tellingProbe) Warn(w record.Warning) {
	fmt.Fprintf(p.out, "warning: %s (%s)\n", w.Text, w.Code)
}

func (p *tellingProbe) Event(e record.Event) {
	if e.Engine != nil {
		p.engine = *e.Engine
	}
}
