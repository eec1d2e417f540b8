package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"llmparity/assets/plans"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/resolve"
)

// presetFlags choose one of the plans that come with the program, and say its sizes in few words.
type presetFlags struct {
	preset      string
	prompt, gen []int // tokens
	lengths     []int
	short, long int
	left        string // which of the preset's engines are not here
}

// presetSizes are the flags that say something to presets alone, and to which.
func presetSizes(name string) []string {
	switch name {
	case "":
		return nil
	case "seqlen":
		return []string{"seqlens", "gen-toks"}
	case "mixed":
		return []string{"short", "long", "gen-toks"}
	}
	return []string{"prompt-toks", "gen-toks"}
}

func (f *presetFlags) register(flags *pflag.FlagSet) {
	var about []string
	for _, name := range plans.Names() {
		what, err := plans.What(name)
		if err != nil {
			panic(err) // it is one of those that there are
		}
		about = append(about, name+": "+strings.TrimSuffix(what, "."))
	}
	flags.StringVar(&f.preset, "preset", "", "a plan that comes with the program, in place of PLAN. "+
		strings.Join(about, ". "))
	flags.IntSliceVar(&f.prompt, "prompt-toks", nil, "of a preset: tokens of the prompt")
	flags.IntSliceVar(&f.gen, "gen-toks", nil, "of a preset: tokens to generate")
	flags.IntSliceVar(&f.lengths, "seqlens", nil, "of the preset seqlen: tokens of prompts, as in 64,128,256")
	flags.IntVar(&f.short, "short", 0, "of the preset mixed: tokens of short prompts")
	flags.IntVar(&f.long, "long", 0, "of the preset mixed: tokens of long prompts")
}

// text is the preset's plan, or the built-in one.
func (f *presetFlags) text() (text []byte, name string) {
	if f.preset == "" {
		return plans.Default, "the built-in plan"
	}
	text, err := plans.Preset(f.preset)
	if err != nil {
		panic(err) // check comes first
	}
	return text, "the preset " + f.preset
}

// check refuses flags that the preset does not heed, or that there is none for.
func (f *presetFlags) check(given func(string) bool, args []string) error {
	if given("preset") && len(args) > 0 {
		return fault.New(fault.Usage, "give one of them", "--preset %s and the plan %s both say what is run", f.preset,
			args[0])
	}
	if given("preset") && !slices.Contains(plans.Names(), f.preset) {
		return fault.New(fault.Usage, "there are: "+strings.Join(plans.Names(), ", "), "--preset %q", f.preset)
	}
	takes := presetSizes(f.preset)
	for _, flag := range []string{"prompt-toks", "gen-toks", "seqlens", "short", "long"} {
		if !given(flag) || slices.Contains(takes, flag) {
			continue
		}
		of := slices.DeleteFunc(plans.Names(),
			func(name string) bool { return !slices.Contains(presetSizes(name), flag) })
		if f.preset == "" {
			return fault.New(fault.Usage, "add one, or use --input-len and --output-len", "--%s is for --preset %s",
				flag, strings.Join(of, ", "))
		}
		return fault.New(fault.Usage, fmt.Sprintf("it takes --%s", strings.Join(takes, ", --")),
			"--%s is for --preset %s, not for %s", flag,
			strings.Join(of, ", "), f.preset)
	}
	for _, size := range []struct {
		flag   string
		values []int
	}{{"prompt-toks", f.prompt}, {"gen-toks", f.gen}, {"seqlens", f.lengths}, {"short", []int{f.short}},
		{"long", []int{f.long}}} {
		if given(size.flag) && (len(size.values) == 0 || slices.Min(size.values) < 1) {
			return fault.New(fault.Usage, "", "--%s: at least 1 token is needed", size.flag)
		}
	}
	return nil
}

// change puts into a preset the sizes that were given.
func (f *presetFlags) change(p *plan.Plan) {
	if f.preset == "" {
		return
	}
	p.Engines = kinds.All.In(f.preset)
	if in := slices.Concat(f.prompt, f.lengths); len(in) > 0 {
		p.InputLengths = in
	}
	if len(f.gen) > 0 {
		p.OutputLengths = f.gen
	}
	longest := 0
	if p.Traffic != nil {
		for i := range p.Traffic.Mix {
			k := &p.Traffic.Mix[i]
			k.InputTokens = cmp.Or(map[string]int{"short": f.short, "long": f.long}[k.Name], k.InputTokens)
			if k.Name == "short" {
				p.InputLengths = []int{k.InputTokens} // which are asked alone, too
			}
			longest = max(longest, k.InputTokens)
		}
	}
	for _, n := range p.InputLengths {
		longest = max(longest, n)
	}
	// else the model's own is taken, as ever
	if need := longest + slices.Max(p.OutputLengths); need > resolve.MaxUnasked {
		p.Context = need
	}
}

// onlyHere leaves out of the preset engines those whose programs are not found, and says which; that one is broken is a
// run's to say. Where none is found, or a user names engines himself, they stay: the run says what they lack.
func (f *runFlags) onlyHere(p *plan.Plan, given func(string) bool) {
	if f.preset != "engines" || given("engines") || given("engine") {
		return
	}
	var here, absent []string
	for _, name := range p.Engines {
		if f.isHere(name) {
			here = append(here, name)
		} else {
			absent = append(absent, name)
		}
	}
	if len(here) > 0 && len(absent) > 0 {
		p.Engines = here
		f.left = fmt.Sprintf("not found here and left out: %s; `llmparity doctor` says how to get them",
			strings.Join(absent, ", "))
	}
}

// isHere tells whether the program of an engine is found, where flags say or where it is searched for.
func (f *engineFlags) isHere(name string) bool {
	k, _ := kinds.All.Of(name)
	if k == nil || k.Program == nil {
		return true
	}
	_, err := f.program(k)
	return err == nil
}

// program is the one of an engine that would be started; empty: none.
func (f *engineFlags) program(k *engine.Kind) (string, error) {
	return k.Program(f.chosen().Config(k), f.chosen().Settings)
}
