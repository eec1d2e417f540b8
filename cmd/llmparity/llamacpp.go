package main

import (
	"os"

	"github.com/spf13/pflag"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/native/llamacpp"
)

// llamacppFlags is what a user may say of llama.cpp.
type llamacppFlags struct {
	llamaServer string
	threads     int // 0: llama.cpp's default here
}

func llamacppKind() engineKind {
	return engineKind{name: llamacpp.Name, flags: []string{"threads", "llama-server", "dtype"},
		gguf: func(dtype string) string { return "runs it as it is stored, in " + dtype },
		make: func(f *engineFlags, _ string) engine.Engine {
			return llamacpp.New(llamacpp.Config{Path: f.llamaServer, Cache: cache.Dir(os.Getenv), Threads: f.threads, KVType: f.dtype})
		}}
}

func (f *llamacppFlags) register(flags *pflag.FlagSet) {
	f.threads = 1
	flags.StringVar(&f.llamaServer, "llama-server", "",
		"the llama-server to start (default: $LLMPARITY_LLAMA_SERVER, else PATH, else the one that make setup built)")
}

func (f *llamacppFlags) valid() error {
	if f.threads < 1 {
		return fault.New(fault.Usage, "", "--threads %d: at least 1 is needed", f.threads)
	}
	return nil
}

func (f *llamacppFlags) follow(p plan.Plan) {
	if p.Threads > 0 {
		f.threads = p.Threads
	}
}
