package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/native"
)

// engineFlags is what a user may say of engines, whichever command starts them.
type engineFlags struct {
	chrome      string
	adapter     string
	llamaServer string
	threads     int
	packageFlags
	modelLib string         // a model library for WebLLM, by its file or address; empty: one is compiled
	bundle   browser.Bundle // which WebLLM
}

func (f *engineFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.chrome, "chrome", "", "the browser to start (default: $LLMPARITY_CHROME, else Chrome or Chromium on PATH)")
	flags.StringVar(&f.adapter, "adapter", "auto", "WebGPU adapter: auto, gpu or swiftshader (computed on the CPU)")
	flags.StringVar(&f.llamaServer, "llama-server", "", "the llama-server to start (default: $LLMPARITY_LLAMA_SERVER, else PATH, else the one that make setup built)")
}

// all makes every engine there is.
func (f *engineFlags) all() []engine.Engine {
	dir := cache.Dir(os.Getenv)
	return []engine.Engine{
		f.webllm(),
		native.New(native.Config{Path: f.llamaServer, Cache: dir, Threads: f.threads, KVType: f.dtype}),
	}
}

// build gives the engines of a plan, in its order.
func (f *engineFlags) build(names []string) ([]engine.Engine, error) {
	if _, err := browser.ParseAdapter(f.adapter); err != nil {
		return nil, err
	}
	if err := f.packageFlags.validate(); err != nil {
		return nil, err
	}
	if f.threads < 1 {
		return nil, fault.New(fault.Usage, "", "--threads %d: at least 1 is needed", f.threads)
	}
	all := f.all()
	var out []engine.Engine
	for _, name := range names {
		i := slices.IndexFunc(all, func(e engine.Engine) bool { return e.Name() == name })
		if i < 0 {
			return nil, unknownEngine(name, all)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func unknownEngine(name string, all []engine.Engine) error {
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	nearest := slices.MinFunc(names, func(a, b string) int { return distance(name, a) - distance(name, b) })
	return fault.New(fault.UnknownEngine, fmt.Sprintf("did you mean %q? There are: %s", nearest, strings.Join(names, ", ")), "unknown engine %q", name)
}

// distance is the number of letters to insert, delete or change to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
