package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/nearest"
	"llmparity/internal/plan"
	"llmparity/native/protocol"
)

// engineKind is an engine that plans may name; each lies in a file of its own.
type engineKind struct {
	name string // in plans; one that ends in a colon is the beginning of names: what follows it is the kind's own
	// gguf says what it does with a GGUF of such weights; nil: what it can do is not its own, but a server's.
	gguf func(dtype string) string
	// flags are those that only some engines heed, this one among them: where none of a plan's does, they are refused.
	flags []string
	// wrong says what is wrong with the rest of a name, where names only begin with the kind's.
	wrong func(rest string) error
	// asks tells that what models an engine can run is known when it is checked, not before: it must be started for
	// that.
	asks bool
	// called is the engine's name in records, where that is not its name in plans.
	called func(rest string) string
	make   func(f *engineFlags, name string) engine.Engine
}

// engineKinds are all there are, in the order in which they are listed.
func engineKinds() []engineKind {
	return []engineKind{webllmKind(), llamacppKind(), oneShotKind(), ollamaKind(), openaiKind(), execKind()}
}

// engineFlags is what a user may say of engines, whichever command starts them: a struct an engine, in that engine's
// file.
type engineFlags struct {
	webllmFlags
	llamacppFlags
	ollamaFlags
	openaiFlags
	packageFlags // WebLLM's, but for dtype, which others follow

	made map[string]engine.Engine // what an engine finds out about the machine it finds out once
}

func (f *engineFlags) register(flags *pflag.FlagSet) {
	f.webllmFlags.register(flags)
	f.llamacppFlags.register(flags)
	f.ollamaFlags.register(flags)
	f.openaiFlags.register(flags)
}

// valid refuses what makes no sense, whichever engines there are.
func (f *engineFlags) valid() error {
	for _, check := range []func() error{f.webllmFlags.valid, f.packageFlags.validate, f.llamacppFlags.valid,
		f.ollamaFlags.valid} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// follow takes from the plan what it says; where it says nothing the flags' own defaults stay.
func (f *engineFlags) follow(p plan.Plan) {
	f.webllmFlags.follow(p)
	f.llamacppFlags.follow(p)
	f.ollamaFlags.follow(p)
	f.openaiFlags.follow(p)
	f.packageFlags.follow(p)
}

// shown is the kind's name, for people.
func (k engineKind) shown() string {
	if strings.HasSuffix(k.name, ":") {
		return k.name + "PATH"
	}
	return k.name
}

// kindOf finds the kind of an engine by its name in a plan, and the rest of that name.
func kindOf(name string) (k engineKind, rest string, ok bool) {
	for _, k := range engineKinds() {
		rest, begins := strings.CutPrefix(name, k.name)
		if begins && (rest == "" || strings.HasSuffix(k.name, ":")) {
			return k, rest, true
		}
	}
	return engineKind{}, "", false
}

// known refuses engines that there are not.
func (f *engineFlags) known(names []string) error {
	plans := map[string]string{} // names in plans, by those in records
	for _, name := range names {
		k, rest, ok := kindOf(name)
		if !ok {
			return unknownEngine(name)
		}
		if k.wrong != nil {
			if err := k.wrong(rest); err != nil {
				return err
			}
		}
		called := name
		if k.called != nil {
			called = k.called(rest)
		}
		if other, twice := plans[called]; twice && other != name {
			return fault.New(fault.Usage, "give one another name, as in "+k.name+"NAME=PATH",
				"the engines %q and %q would both be %s in the record", other, name, called)
		}
		plans[called] = name
	}
	return nil
}

// named gives an engine of a name that is known: the same one for the same name. What flags say of it must be settled
// before.
func (f *engineFlags) named(name string) engine.Engine {
	if e, ok := f.made[name]; ok {
		return e
	}
	k, _, ok := kindOf(name)
	if !ok {
		panic("an engine that nobody knows: " + name) // known comes first
	}
	if f.made == nil {
		f.made = map[string]engine.Engine{}
	}
	f.made[name] = k.make(f, name)
	return f.made[name]
}

// build gives the engines of a plan, in its order, after known.
func (f *engineFlags) build(names []string) []engine.Engine {
	var out []engine.Engine
	for _, name := range names {
		out = append(out, f.named(name))
	}
	return out
}

// names are those of the engines that go by one name.
func names() []string {
	var out []string
	for _, k := range engineKinds() {
		if !strings.HasSuffix(k.name, ":") {
			out = append(out, k.name)
		}
	}
	return out
}

// engineList names all engines, for people.
func engineList() string {
	var out []string
	for _, k := range engineKinds() {
		out = append(out, k.shown())
	}
	return strings.Join(out, ", ")
}

func unknownEngine(name string) error {
	return fault.New(fault.UnknownEngine,
		fmt.Sprintf("did you mean %q? There are: %s", meant(name), engineList()), "unknown engine %q", name)
}

// meant is the name that somebody may have meant. What lies in a folder is a program.
func meant(name string) string {
	head, rest, _ := strings.Cut(name, ":")
	if strings.Contains(head, "/") {
		return protocol.Prefix + name
	}
	likely := nearest.Of(head, append(names(), strings.TrimSuffix(protocol.Prefix, ":")), 1)[0]
	if likely+":" == protocol.Prefix {
		return protocol.Prefix + cmp.Or(rest, "PATH")
	}
	return likely
}

// heed tells whether one of the engines heeds a flag that not all do.
func heed(engines []string, flag string) bool {
	return slices.ContainsFunc(engines, func(name string) bool {
		k, _, _ := kindOf(name)
		return slices.Contains(k.flags, flag)
	})
}

// used refuses flags that none of the plan's engines heeds. A plan may say more than it needs: --engines may have
// changed it.
func used(engines []string, given func(string) bool) error {
	heeded := map[string][]string{} // the engines of a flag
	var flags []string
	for _, k := range engineKinds() {
		for _, flag := range k.flags {
			if heeded[flag] == nil {
				flags = append(flags, flag)
			}
			heeded[flag] = append(heeded[flag], k.shown())
		}
	}
	for _, flag := range flags {
		if !given(flag) || heed(engines, flag) {
			continue
		}
		of := strings.Join(heeded[flag], " or ")
		return fault.New(fault.Usage, "leave it out, or add "+of+" to --engines",
			"--%s is for %s, which is none of the engines", flag, of)
	}
	return nil
}
