package main

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/native/ollama"
)

// ollamaFlags is what a user may say of Ollama.
type ollamaFlags struct {
	ollama  string // the program
	ollamas plan.Ollama
	slots   int  // generations at a time; 0: one
	keep    bool // what a prompt left in the cache
}

func ollamaKind() engineKind {
	return engineKind{name: ollama.Name,
		flags: []string{"threads", "ollama", "ollama-url", "ollama-kv-type", "ollama-keep-alive", "ollama-gpu"},
		gguf:  func(dtype string) string { return "runs it as it is stored, in " + dtype + ", with a KV cache of f16" },
		make:  func(f *engineFlags, _ string) engine.Engine { return ollama.New(f.ollamaFlags.config(f.threads)) }}
}

func (f *ollamaFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.ollama, "ollama", "",
		"the ollama to start (default: $LLMPARITY_OLLAMA, else PATH, else the one that scripts/setup ollama built)")
	flags.StringVar(&f.ollamas.URL, "ollama-url", "", "an Ollama that runs already, such as "+ollama.DefaultURL+
		" (default: one is started, with a store of its own)")
	flags.StringVar(&f.ollamas.KVType, "ollama-kv-type", "", "numbers of the KV cache of the Ollama that is started: "+
		strings.Join(plan.OllamaKVTypes(), ", ")+"; quantised ones need a GPU that has flash attention (default: f16)")
	flags.StringVar(&f.ollamas.KeepAlive, "ollama-keep-alive", "",
		"how long a model stays in Ollama's memory after a request, as in 10m; -1: for ever (default: for ever, 15m in one that runs already)")
	flags.BoolVar(&f.ollamas.GPU, "ollama-gpu", false, "let the Ollama that is started use a GPU")
}

// valid refuses flags that make no sense.
func (f *ollamaFlags) valid() error { return f.config(0).Check() }

// change puts into the plan what flags say.
func (f *ollamaFlags) change(p *plan.Plan, given func(string) bool) {
	said := plan.Ollama{}
	if p.Ollama != nil {
		said = *p.Ollama
	}
	for flag, set := range map[string]func(){
		"ollama-url":        func() { said.URL = f.ollamas.URL },
		"ollama-kv-type":    func() { said.KVType = f.ollamas.KVType },
		"ollama-keep-alive": func() { said.KeepAlive = f.ollamas.KeepAlive },
		"ollama-gpu":        func() { said.GPU = f.ollamas.GPU },
	} {
		if given(flag) {
			set()
			p.Ollama = &said
		}
	}
}

// follow takes what the plan says.
func (f *ollamaFlags) follow(p plan.Plan) {
	f.slots, f.keep = p.Slots, p.Cache == record.CacheOn
	if p.Ollama != nil {
		f.ollamas = *p.Ollama
	}
}

// complete writes into the plan what was chosen by default.
func (f *ollamaFlags) complete(p *plan.Plan, threads int) {
	if !slices.Contains(p.Engines, ollama.Name) {
		return
	}
	if timeout := time.Duration(p.Timeout); f.ollamas.URL != "" && f.ollamas.KeepAlive == "" &&
		timeout > ollama.KeepAlive {
		f.ollamas.KeepAlive = timeout.String() // the model must not go within a launch
	}
	said := f.ollamas
	if said.URL == "" && said.KVType == "" {
		said.KVType = "f16"
	}
	p.Threads, p.Ollama = threads, &said
}

func (f *ollamaFlags) config(threads int) ollama.Config {
	return ollama.Config{Path: f.ollama, Cache: cache.Dir(os.Getenv), URL: f.ollamas.URL, Threads: threads,
		KVType:    f.ollamas.KVType,
		KeepAlive: f.ollamas.KeepAlive, GPU: f.ollamas.GPU, Slots: f.slots, PromptCache: f.keep}
}
