package main

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
)

// llamacppFlags is what a user may say of llama.cpp.
type llamacppFlags struct {
	llamaServer string
	llamaCLI    string
	threads     int // 0: llama.cpp's default here
	llama       plan.LlamaCpp
	slots       int  // generations at a time in a server; 0: one
	keep        bool // what a prompt left in a slot's cache
}

// llamacppOptions are the flags that both of llama.cpp's programs heed.
func llamacppOptions() []string {
	return []string{"threads", "dtype", "llamacpp-batch-threads", "llamacpp-batch", "llamacpp-ubatch",
		"llamacpp-cache-type-k",
		"llamacpp-cache-type-v", "llamacpp-flash-attention", "llamacpp-mmap", "llamacpp-gpu-layers"}
}

func llamacppKind() engineKind {
	return engineKind{name: llamacpp.Name, flags: append(llamacppOptions(), "llama-server"),
		gguf: func(dtype string) string { return "runs it as it is stored, in " + dtype },
		make: func(f *engineFlags, _ string) engine.Engine { return llamacpp.New(f.llamacppFlags.config(f.dtype)) }}
}

func oneShotKind() engineKind {
	return engineKind{name: llamacpp.OneShotName, flags: append(llamacppOptions(), "llamacpp-cli"),
		gguf: func(dtype string) string { return "runs it as it is stored, in " + dtype + ", a process a generation" },
		make: func(f *engineFlags, _ string) engine.Engine {
			return llamacpp.NewOneShot(f.llamacppFlags.config(f.dtype))
		}}
}

func (f *llamacppFlags) register(flags *pflag.FlagSet) {
	f.threads = 1
	flags.StringVar(&f.llamaServer, "llama-server", "",
		"the llama-server to start (default: $LLMPARITY_LLAMA_SERVER, else PATH, else the one that make setup built)")
	flags.StringVar(&f.llamaCLI, "llamacpp-cli", "", "the program of "+llamacpp.OneShotName+
		": llama-completion, or an older llama-cli or main "+
		"(default: $LLMPARITY_LLAMA_CLI, else PATH, else the one that scripts/setup llamacpp-tools built)")
	l := &f.llama
	flags.IntVar(&l.BatchThreads, "llamacpp-batch-threads", 0,
		"llama.cpp's threads in prefill; 0: as many as --threads")
	flags.IntVar(&l.Batch, "llamacpp-batch", 0, "tokens of a prompt that llama.cpp takes at a time; 0: its own choice")
	flags.IntVar(&l.UBatch, "llamacpp-ubatch", 0, "tokens that llama.cpp computes at a time; 0: its own choice")
	types := strings.Join(plan.CacheTypes(), ", ")
	flags.StringVar(&l.CacheTypeK, "llamacpp-cache-type-k", "", "numbers of the keys in llama.cpp's KV cache: "+types+
		" (default: --dtype's)")
	flags.StringVar(&l.CacheTypeV, "llamacpp-cache-type-v", "",
		"numbers of the values in llama.cpp's KV cache: as of the keys; quantised ones need flash attention")
	flags.StringVar(&l.FlashAttention, "llamacpp-flash-attention", "off",
		"llama.cpp's flash attention: off, on or auto; it sums in another order")
	flags.StringVar(&l.Mmap, "llamacpp-mmap", "on",
		"whether llama.cpp maps the model's file: on, or off (reads it into memory of its own)")
	flags.IntVar(&l.GPULayers, "llamacpp-gpu-layers", 0, "layers that llama.cpp puts on a GPU; its build must have one")
}

func (f *llamacppFlags) valid() error {
	if f.threads < 1 {
		return fault.New(fault.Usage, "", "--threads %d: at least 1 is needed", f.threads)
	}
	return nil
}

// change puts into the plan what flags say.
func (f *llamacppFlags) change(p *plan.Plan, given func(string) bool) {
	said := plan.LlamaCpp{}
	if p.LlamaCpp != nil {
		said = *p.LlamaCpp
	}
	for flag, set := range map[string]func(){
		"llamacpp-batch-threads":   func() { said.BatchThreads = f.llama.BatchThreads },
		"llamacpp-batch":           func() { said.Batch = f.llama.Batch },
		"llamacpp-ubatch":          func() { said.UBatch = f.llama.UBatch },
		"llamacpp-cache-type-k":    func() { said.CacheTypeK = f.llama.CacheTypeK },
		"llamacpp-cache-type-v":    func() { said.CacheTypeV = f.llama.CacheTypeV },
		"llamacpp-flash-attention": func() { said.FlashAttention = f.llama.FlashAttention },
		"llamacpp-mmap":            func() { said.Mmap = f.llama.Mmap },
		"llamacpp-gpu-layers":      func() { said.GPULayers = f.llama.GPULayers },
	} {
		if given(flag) {
			set()
			p.LlamaCpp = &said
		}
	}
}

// follow takes what the plan says.
func (f *llamacppFlags) follow(p plan.Plan) {
	f.slots, f.keep = p.Slots, p.Cache == record.CacheOn
	if p.Threads > 0 {
		f.threads = p.Threads
	}
	if p.LlamaCpp != nil {
		f.llama = *p.LlamaCpp
	}
}

// complete writes into the plan what was chosen by default.
func (f *llamacppFlags) complete(p *plan.Plan) {
	if !slices.Contains(p.Engines, llamacpp.Name) && !slices.Contains(p.Engines, llamacpp.OneShotName) {
		return
	}
	l := f.llama
	l.BatchThreads = cmp.Or(l.BatchThreads, f.threads)
	l.FlashAttention, l.Mmap = cmp.Or(l.FlashAttention, "off"), cmp.Or(l.Mmap, "on")
	p.Threads, p.LlamaCpp = f.threads, &l
}

func (f *llamacppFlags) config(dtype string) llamacpp.Config {
	l := f.llama
	return llamacpp.Config{Path: f.llamaServer, CLI: f.llamaCLI, Cache: cache.Dir(os.Getenv), Threads: f.threads,
		BatchThreads: l.BatchThreads,
		Batch:        l.Batch, UBatch: l.UBatch, KVType: dtype, CacheK: l.CacheTypeK, CacheV: l.CacheTypeV,
		FlashAttention: l.FlashAttention,
		NoMmap:         l.Mmap == "off", GPULayers: l.GPULayers, Slots: f.slots, PromptCache: f.keep}
}
