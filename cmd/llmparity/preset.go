package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/native/llamacpp"
	"llmparity/native/ollama"
)

// presetFlags choose one of the plans that come with the program, and say its sizes in few words.
type presetFlags struct {
	preset      string
	prompt, gen []int // tokens
	lengths     []int
	short, long int
}

// preset is a plan that is made of a few sizes. It fits the tiny model where no sizes are given.
type preset struct {
	name, what string
	flags      []string // those of presetFlags that it heeds
	plan       func(f *presetFlags, p *plan.Plan)
}

// presets are all there are, in the order in which they are listed.
func presets() []preset {
	return []preset{
		{"smoke", "does it run at all: one short launch of each engine", []string{"prompt-toks", "gen-toks"}, smokePreset},
		{"compare", "one prompt, six launches of each engine", []string{"prompt-toks", "gen-toks"}, comparePreset},
		{"kv-growth", "a short prompt and a long text: memory as the KV cache fills", []string{"prompt-toks", "gen-toks"}, growthPreset},
		{"concurrency", "memory and throughput against clients (fig1, fig2)", []string{"prompt-toks", "gen-toks"}, concurrencyPreset},
		{"seqlen", "times and memory against the length of the prompt (fig3, fig4)", []string{"seqlens", "gen-toks"}, seqlenPreset},
		{"mixed", "short requests beside long ones, and their tail (fig5)", []string{"short", "long", "gen-toks"}, mixedPreset},
		{"engines", "the same request in every engine that is here", []string{"prompt-toks", "gen-toks"}, enginesPreset},
	}
}

func presetNames() []string {
	var out []string
	for _, p := range presets() {
		out = append(out, p.name)
	}
	return out
}

func (f *presetFlags) register(flags *pflag.FlagSet) {
	var about []string
	for _, p := range presets() {
		about = append(about, p.name+": "+p.what)
	}
	flags.StringVar(&f.preset, "preset", "", "a plan that comes with the program, in place of PLAN; "+strings.Join(about, "; "))
	flags.IntSliceVar(&f.prompt, "prompt-toks", nil, "of a preset: tokens of the prompt")
	flags.IntSliceVar(&f.gen, "gen-toks", nil, "of a preset: tokens to generate")
	flags.IntSliceVar(&f.lengths, "seqlens", nil, "of the preset seqlen: tokens of prompts, as in 64,128,256")
	flags.IntVar(&f.short, "short", 0, "of the preset mixed: tokens of short prompts")
	flags.IntVar(&f.long, "long", 0, "of the preset mixed: tokens of long prompts")
}

// presetOnly are the flags that say something to presets alone.
var presetOnly = []string{"prompt-toks", "gen-toks", "seqlens", "short", "long"}

// check refuses flags that the preset does not heed, or that there is none for.
func (f *presetFlags) check(given func(string) bool, args []string) error {
	if given("preset") && len(args) > 0 {
		return fault.New(fault.Usage, "give one of them", "--preset %s and the plan %s both say what is run", f.preset, args[0])
	}
	chosen, ok := f.chosen()
	if given("preset") && !ok {
		return fault.New(fault.Usage, "there are: "+strings.Join(presetNames(), ", "), "--preset %q", f.preset)
	}
	for _, flag := range presetOnly {
		if !given(flag) || slices.Contains(chosen.flags, flag) {
			continue
		}
		var of []string
		for _, p := range presets() {
			if slices.Contains(p.flags, flag) {
				of = append(of, p.name)
			}
		}
		if !ok {
			return fault.New(fault.Usage, "add one, or use --input-len and --output-len", "--%s is for --preset %s", flag, strings.Join(of, ", "))
		}
		return fault.New(fault.Usage, fmt.Sprintf("it takes --%s", strings.Join(chosen.flags, ", --")), "--%s is for --preset %s, not for %s", flag,
			strings.Join(of, ", "), f.preset)
	}
	return f.sizes(given)
}

// sizes refuses sizes of no token.
func (f *presetFlags) sizes(given func(string) bool) error {
	for _, size := range []struct {
		flag   string
		values []int
	}{{"prompt-toks", f.prompt}, {"gen-toks", f.gen}, {"seqlens", f.lengths}, {"short", []int{f.short}}, {"long", []int{f.long}}} {
		if given(size.flag) && (len(size.values) == 0 || slices.Min(size.values) < 1) {
			return fault.New(fault.Usage, "", "--%s: at least 1 token is needed", size.flag)
		}
	}
	return nil
}

func (f *presetFlags) chosen() (preset, bool) {
	for _, p := range presets() {
		if p.name == f.preset {
			return p, true
		}
	}
	return preset{}, false
}

// change makes the preset of the built-in plan.
func (f *presetFlags) change(p *plan.Plan, given func(string) bool) error {
	chosen, ok := f.chosen()
	if !ok {
		return nil
	}
	p.Name = chosen.name
	chosen.plan(f, p)
	return nil
}

// sized gives prompts and texts their lengths.
func sized(p *plan.Plan, in, out []int) {
	p.Prompts, p.InputLengths = nil, in
	p.MaxTokens, p.OutputLengths = 0, out
	if need := slices.Max(in) + slices.Max(out); need > maxUnasked {
		p.Context = need // else the model's own is taken, as ever
	}
}

// or gives sizes where none were.
func or(given []int, otherwise ...int) []int {
	if len(given) > 0 {
		return given
	}
	return otherwise
}

func smokePreset(f *presetFlags, p *plan.Plan) {
	sized(p, or(f.prompt, 8), or(f.gen, 8))
	p.Repetitions, p.Warmup.Launches = 1, 0
}

func comparePreset(f *presetFlags, p *plan.Plan) {
	sized(p, or(f.prompt, 64), or(f.gen, 64))
}

func growthPreset(f *presetFlags, p *plan.Plan) {
	sized(p, or(f.prompt, 32), or(f.gen, 512))
	p.Repetitions, p.Warmup.Launches = 3, 0
}

func concurrencyPreset(f *presetFlags, p *plan.Plan) {
	sized(p, or(f.prompt, 64), or(f.gen, 16))
	p.Concurrency = []int{1, 2, 4, 8}
	p.Repetitions, p.Warmup.Launches = 3, 0
}

func seqlenPreset(f *presetFlags, p *plan.Plan) {
	sized(p, or(f.lengths, 64, 128, 256, 512), or(f.gen, 32))
	p.Repetitions, p.Warmup.Launches = 3, 0
}

// mixedPreset sends four short requests for each long one: what a client of few words meets on a server that others use otherwise.
func mixedPreset(f *presetFlags, p *plan.Plan) {
	short, long, gen := or(some(f.short), 32), or(some(f.long), 512), or(f.gen, 32)
	sized(p, short, gen[:1])
	if need := long[0] + gen[0]; need > maxUnasked {
		p.Context = need
	}
	p.Concurrency = []int{4}
	p.Traffic = &plan.Traffic{Loop: "closed", Requests: 20, Mix: []plan.Kind{{Name: "short", Share: 0.8, InputTokens: short[0]},
		{Name: "long", Share: 0.2, InputTokens: long[0]}}}
	p.Repetitions, p.Warmup.Launches = 3, 0
}

func some(n int) []int {
	if n == 0 {
		return nil
	}
	return []int{n}
}

// enginesPreset names every engine that needs no server's address and is here. That one is broken is a run's to say, not this one's.
func enginesPreset(f *presetFlags, p *plan.Plan) {
	sized(p, or(f.prompt, 64), or(f.gen, 32))
	p.Repetitions, p.Warmup.Launches = 3, 0
	p.Engines = nil
	dir := cache.Dir(os.Getenv)
	if _, err := browser.FindChrome(""); err == nil {
		p.Engines = append(p.Engines, browser.Name)
	}
	if _, err := llamacpp.Find(llamacpp.Config{Cache: dir}); err == nil {
		p.Engines = append(p.Engines, llamacpp.Name)
	}
	if _, err := llamacpp.FindCLI(llamacpp.Config{Cache: dir}); err == nil {
		p.Engines = append(p.Engines, llamacpp.OneShotName)
	}
	if _, err := ollama.Find(ollama.Config{Cache: dir}); err == nil {
		p.Engines = append(p.Engines, ollama.Name)
	}
}
