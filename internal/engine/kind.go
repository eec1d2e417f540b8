package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/nearest"
	"llmparity/internal/record"
)

// Kind is all that the program knows of an engine before one is made. Flags, sections of plans and their schema,
// --dry-run, doctor, presets and the colours of reports derive from it.
type Kind struct {
	// Name is what users type. A name that ends in a colon begins names: what follows is the engine's own.
	Name  string
	Title string // for people
	// Default says that it runs where a plan names no engines, and in presets.
	Default bool
	// Presets are those that it runs in beside the default engines.
	Presets []string
	// Colour is its colour in reports: a number of the style sheet's, from 1; 0: one that is left.
	Colour int
	// Browser says that it runs in one.
	Browser bool

	// Section names its section in plans, which kinds may share. If Root, its keys stand at the top of a plan.
	Section string
	Root    bool
	// Config gives a configuration with its defaults; nil: it has none, and no section.
	Config func() Config
	// New makes an engine of a name of this kind. It starts nothing.
	New func(name string, c Config, s Settings) Engine
	// Called is the name in records of an engine that is typed as Name with rest behind it, or what is wrong with the
	// rest; nil: Name.
	Called func(rest string) (string, error)

	// Shared are the flags that only some engines heed, this one among them, beside those of its own configuration.
	Shared []string
	// Axes are those that only some engines have to do with, this one among them, beside its versions.
	Axes []string
	// Version is the one that is built in, of an engine of which there are others. VersionAxis is the axis of plans
	// that says which, ENGINE_version, and VersionHelp what its flag's help says.
	Version, VersionAxis, VersionHelp string
	// DTypes are those that it computes in; nil: not known from here. DTypeOf says what of it has them.
	DTypes  []string
	DTypeOf string
	// KVTypes are the dtypes that its KV cache can have beside weights of a dtype; nil: it can't be chosen from here.
	KVTypes func(dtype string) []string
	// Formats are those of models that it runs beside GGUF.
	Formats []string

	// Memory is how it has models in memory; nil: that is not known.
	Memory *Memory

	// Asks says that only a running engine knows which models it can run.
	Asks bool
	// Runs says what it does with a GGUF whose weights have a dtype; nil: that is a server's or a program's to say.
	Runs func(dtype string) string
	// Makes says why what it needs of a GGUF can't be made here; nil: it needs nothing.
	Makes func(m Model) error
	// Parts are what it works with, in the order in which what is missing counts; nil: nothing can be missing.
	Parts func(c Config, s Settings) []Search
	// Ask finds out what answers at an address; nil: it is no server's engine.
	Ask func(ctx context.Context, url string) Part
	// Found says what it could run here.
	Found func(Here) Finding
	// Compare compares the parts of an engine that ran with those here; nil: its program is compared by its sum.
	Compare func(ctx context.Context, was record.EngineInfo, c Config, s Settings, to Comparison)
	// Libraries is the sum of a program's own libraries; nil: it has none.
	Libraries func(path string) string
	// Program finds the program that would be started, with no path if none would; nil: there is none to find.
	Program func(c Config, s Settings) (path string, err error)
}

// Axes that only some engines have to do with, or that a field of an engine's own may say too.
const (
	AxisThreads = "thread_counts"
	AxisKV      = "kv_cache_dtypes"
)

// VersionList names the axis of its versions as lists do; empty: there is one version.
func (k *Kind) VersionList() string {
	if k.VersionAxis == "" {
		return ""
	}
	return k.VersionAxis + "s"
}

// Concerned tells whether an axis, of those that only some engines have to do with, says something to it.
func (k *Kind) Concerned(list string) bool {
	return slices.Contains(k.Axes, list) || k.VersionList() == list
}

// Shown is the kind's name as people would type it.
func (k *Kind) Shown() string {
	if k.begins() {
		return k.Name + "PATH"
	}
	return k.Name
}

// begins says that the kind's name only begins names.
func (k *Kind) begins() bool { return strings.HasSuffix(k.Name, ":") }

// Heeds says whether a flag, of those that only some engines heed, makes a difference to it.
func (k *Kind) Heeds(flag string) bool { return slices.Contains(k.Flags(), flag) }

// Flags are those that it heeds, of those that only some engines do.
func (k *Kind) Flags() []string {
	out := slices.Clone(k.Shared)
	if k.Config != nil {
		for _, f := range k.Config().Fields() {
			if f.Flag != "" && (f.Only == "" || f.Only == k.Name) {
				out = append(out, f.Flag)
			}
		}
	}
	return out
}

// Kinds are all that there are, in the order in which they are listed.
type Kinds []*Kind

// Of finds the kind of a name, and the rest of a name that the kind's only begins; nil: there is none.
func (ks Kinds) Of(name string) (k *Kind, rest string) {
	for _, k := range ks {
		rest, ok := strings.CutPrefix(name, k.Name)
		if ok && (rest == "" || k.begins()) {
			return k, rest
		}
	}
	return nil, ""
}

// Names are those of the engines that go by one name.
func (ks Kinds) Names() []string {
	var out []string
	for _, k := range ks {
		if !k.begins() {
			out = append(out, k.Name)
		}
	}
	return out
}

// List names all engines, for people.
func (ks Kinds) List() string {
	out := make([]string, len(ks))
	for i, k := range ks {
		out[i] = k.Shown()
	}
	return strings.Join(out, ", ")
}

// Defaults are the engines that run where none is named.
func (ks Kinds) Defaults() []string { return ks.In("") }

// In are the engines that run in a preset.
func (ks Kinds) In(preset string) []string {
	var out []string
	for _, k := range ks {
		if k.Default || slices.Contains(k.Presets, preset) {
			out = append(out, k.Name)
		}
	}
	return out
}

// VersionAxes are the axes of versions, of engines that have several.
func (ks Kinds) VersionAxes() []string {
	var out []string
	for _, k := range ks {
		if k.VersionAxis != "" {
			out = append(out, k.VersionAxis)
		}
	}
	return out
}

// Concerned are the engines that an axis says something to, as people type them.
func (ks Kinds) Concerned(list string) []string {
	var out []string
	for _, k := range ks {
		if k.Concerned(list) {
			out = append(out, k.Shown())
		}
	}
	return out
}

// Memories are how engines have models in memory, each once.
func (ks Kinds) Memories() []*Memory {
	var out []*Memory
	for _, k := range ks {
		if k.Memory != nil && !slices.Contains(out, k.Memory) {
			out = append(out, k.Memory)
		}
	}
	return out
}

// Colours are the engines' own colours, by their names.
func (ks Kinds) Colours() map[string]int {
	out := map[string]int{}
	for _, k := range ks {
		if k.Colour > 0 {
			out[k.Name] = k.Colour
		}
	}
	return out
}

// Sections are the kinds, one for each section of plans.
func (ks Kinds) Sections() Kinds {
	var out Kinds
	for _, k := range ks {
		if k.Config != nil && !slices.ContainsFunc(out, func(o *Kind) bool { return o.Section == k.Section }) {
			out = append(out, k)
		}
	}
	return out
}

// Known refuses names of engines that there are not, and two that records could not tell apart.
func (ks Kinds) Known(names []string) error {
	typed := map[string]string{} // by names in records
	for _, name := range names {
		k, rest := ks.Of(name)
		if k == nil {
			return ks.unknown(name)
		}
		called := name
		if k.Called != nil {
			var err error
			if called, err = k.Called(rest); err != nil {
				return err
			}
		}
		if other, twice := typed[called]; twice && other != name {
			return fault.New(fault.Usage, "give one another name, as in "+k.Name+"NAME=PATH",
				"the engines %q and %q would both be %s in the record", other, name, called)
		}
		typed[called] = name
	}
	return nil
}

func (ks Kinds) unknown(name string) error {
	return fault.New(fault.UnknownEngine, fmt.Sprintf("did you mean %q? There are: %s", ks.meant(name), ks.List()),
		"unknown engine %q", name)
}

// meant is the name that somebody may have meant. What lies in a folder is a program.
func (ks Kinds) meant(name string) string {
	head, rest, _ := strings.Cut(name, ":")
	var likely []string
	for _, k := range ks {
		if k.begins() && strings.Contains(head, "/") {
			return k.Name + name
		}
		likely = append(likely, strings.TrimSuffix(k.Name, ":"))
	}
	nearest := nearest.Of(head, likely, 1)[0]
	if k, _ := ks.Of(nearest + ":"); k != nil {
		return k.Name + cmp.Or(rest, "PATH")
	}
	return nearest
}

// Heed tells whether one of the engines heeds a flag that not all do.
func (ks Kinds) Heed(engines []string, flag string) bool {
	return slices.ContainsFunc(engines, func(name string) bool {
		k, _ := ks.Of(name)
		return k != nil && k.Heeds(flag)
	})
}

// Used refuses flags that none of the engines heeds.
func (ks Kinds) Used(engines []string, given func(string) bool) error {
	heeded := map[string][]string{} // the engines of a flag
	var flags []string
	for _, k := range ks {
		for _, flag := range k.Flags() {
			if heeded[flag] == nil {
				flags = append(flags, flag)
			}
			heeded[flag] = append(heeded[flag], k.Shown())
		}
	}
	for _, flag := range flags {
		if given(flag) && !ks.Heed(engines, flag) {
			of := strings.Join(heeded[flag], " or ")
			return fault.New(fault.Usage, "leave it out, or add "+of+" to --engines",
				"--%s is for %s, which is none of the engines", flag, of)
		}
	}
	return nil
}
