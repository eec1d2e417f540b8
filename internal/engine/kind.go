package engine

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/models"
	"llmparity/internal/models/mlc"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Kind is everything that llmparity knows about an engine before one is made. Flags, plan sections and their schema,
// --dry-run, doctor, presets and colours in reports are derived from it.
type Kind struct {
	// Name is what users type. A name that ends in a colon is a prefix: the engine interprets the rest.
	Name  string
	Title string // for people
	// Default: runs if a plan names no engines, and in every preset.
	Default bool
	// Presets lists further presets that include it.
	Presets []string
	// Colour in reports: a number of the style sheet, 1 to 6; 0: any free one.
	Colour int
	// Browser: runs in a browser.
	Browser bool

	// Section names its section in plans, which kinds may share. With Root, the keys are at the top level of the plan.
	Section string
	Root    bool
	// Config returns a configuration with defaults; nil: no configuration and no section.
	Config func() Config
	// New makes an engine of this kind. It starts nothing.
	New func(name string, c Config, s Settings) Engine
	// Called returns the name in records for what the user typed after the prefix Name, or an error; nil: Name.
	Called func(rest string) (string, error)

	// Shared lists the flags outside its own configuration that it uses and that not all engines use.
	Shared []string
	// Axes lists the plan axes that apply to it and not to all engines; its version axis is implied.
	Axes []string
	// Version is the built-in one if there are several. VersionAxis is the plan axis that selects one, ENGINE_version;
	// VersionHelp is the help of its flag.
	Version, VersionAxis, VersionHelp string
	// DTypes that it computes in; nil: unknown. DTypeOf says what in it has this dtype.
	DTypes  []string
	DTypeOf string
	// KVTypes lists the KV cache dtypes that can be chosen; nil: none can.
	KVTypes []string
	// Formats of models that it runs, by their names in models; nil: GGUF, or what it says when it starts.
	Formats []string
	// Can says what it does with a model whose Facts have none for engines, or returns why it cannot.
	Can func(path string) (string, error)
	// Library says where a compiled model library comes from, and which model runs with it, or returns why none does;
	// nil: it has no such libraries.
	Library func(path string, l mlc.Library) (origin, can string, err error)

	// Memory describes how it holds models in memory; nil: unknown.
	Memory *Memory

	// Remote: somebody else started it, with settings that a plan can only state.
	Remote bool
	// Deploys: starts a server by the fields of a Deployment. Contained: a plan with container_name and without engines
	// means it. Inside: its programs can be started in a container, or a server
	// there is measured.
	Deploys, Contained, Inside bool
	// Asks: only a running engine knows which models it can run.
	Asks bool
	// Runs describes what it does with a model whose weights have a dtype; nil: only the server or program knows.
	Runs func(dtype string) string
	// CannotMake returns why the files that it needs cannot be made from a GGUF here. It is nil if it needs none.
	CannotMake func(m models.Model) error
	// Parts lists the programs and files that it needs, most important first; nil: none can be missing.
	Parts func(c Config, s Settings) []Search
	// Ask finds out what answers at an address; nil: not a server.
	Ask func(ctx context.Context, url string) Part
	// Found says what it could run here; nil: doctor leaves it out.
	Found func(Here) Finding
	// Compare compares the parts of a recorded engine with those found here; nil: compare the program's hash.
	Compare func(ctx context.Context, was record.EngineInfo, c Config, s Settings, to Comparison)
	// Libraries returns a hash of the program's own shared libraries; nil: it has none.
	Libraries func(path string) string
	// Devices lists settings, each of another device or backend of this machine that it could compute on. The preset
	// matrix tries all of them; nil: there is one.
	Devices func(c Config) []Section
	// Program finds the program that would be started, with an empty path if none would; nil: there is none.
	Program func(c Config, s Settings) (path string, err error)
}

// Plan axes that not all engines have, and that an engine's own section may also set.
const (
	AxisThreads = "thread_counts"
	AxisKV      = "kv_cache_dtypes"
	AxisWeights = "weights"
	AxisStorage = "storages"
	AxisStored  = "stored"
)

// Where a browser may keep a model, and what it may have of it before a launch; the first is the default.
var (
	Storages = []string{record.CacheAPI, record.IndexedDB, record.OPFS, record.CrossOrigin, record.NoStorage}
	Stored   = []string{ran.StoredEmpty, ran.StoredHalf, ran.StoredFilled}
)

// WeightForms are the forms in which an engine that converts models may store weights; the first is the default.
var WeightForms = []string{"as-is", "f32", "f16"}

// VersionList returns the plural name of its version axis; empty if there is one version.
func (k *Kind) VersionList() string {
	if k.VersionAxis == "" {
		return ""
	}
	return k.VersionAxis + "s"
}

// Concerned reports whether an axis that not all engines have applies to it.
func (k *Kind) Concerned(list string) bool {
	return slices.Contains(k.Axes, list) || k.VersionList() == list
}

// Shown is the name as users type it.
func (k *Kind) Shown() string {
	if k.begins() {
		return k.Name + "PATH"
	}
	return k.Name
}

// begins reports whether the name is a prefix.
func (k *Kind) begins() bool { return strings.HasSuffix(k.Name, ":") }

// Reads reports whether it runs models of a format, as far as that is known before it starts.
func (k *Kind) Reads(format string) bool {
	return slices.Contains(k.Formats, format) || k.Formats == nil && format == models.GGUF
}

// Uses reports whether it uses a flag that not all engines use.
func (k *Kind) Uses(flag string) bool { return slices.Contains(k.Flags(), flag) }

// Flags lists the flags that it uses and that not all engines use.
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

// Kinds is a list of kinds in display order.
type Kinds []*Kind

// Of returns the kind of a name, and what follows the prefix; nil if there is none.
func (ks Kinds) Of(name string) (k *Kind, rest string) {
	for _, k := range ks {
		rest, ok := strings.CutPrefix(name, k.Name)
		if ok && (rest == "" || k.begins()) {
			return k, rest
		}
	}
	return nil, ""
}

// of returns something of each kind that is wanted, in order.
func of[T any](ks Kinds, wanted func(*Kind) bool, what func(*Kind) T) []T {
	var out []T
	for _, k := range ks {
		if wanted(k) {
			out = append(out, what(k))
		}
	}
	return out
}

func (k *Kind) name() string { return k.Name }

// Names returns the names of all engines that are not prefixes.
func (ks Kinds) Names() []string {
	return of(ks, func(k *Kind) bool { return !k.begins() }, (*Kind).name)
}

// List returns all engines, for people.
func (ks Kinds) List() string {
	return strings.Join(of(ks, func(*Kind) bool { return true }, (*Kind).Shown), ", ")
}

// In returns the engines that a preset runs; without one, the engines that run if none is named.
func (ks Kinds) In(preset string) []string {
	return of(ks, func(k *Kind) bool { return k.Default || slices.Contains(k.Presets, preset) }, (*Kind).name)
}

// Contained returns the engines that a plan with container_name means.
func (ks Kinds) Contained() []string {
	return of(ks, func(k *Kind) bool { return k.Contained }, (*Kind).name)
}

// VersionAxes returns the version axes of engines that have several versions.
func (ks Kinds) VersionAxes() []string {
	return of(ks, func(k *Kind) bool { return k.VersionAxis != "" }, func(k *Kind) string { return k.VersionAxis })
}

// Concerned returns the engines that an axis applies to, as users type them.
func (ks Kinds) Concerned(list string) []string {
	return of(ks, func(k *Kind) bool { return k.Concerned(list) }, (*Kind).Shown)
}

// Memories returns the distinct memory models of all kinds.
func (ks Kinds) Memories() []*Memory {
	all := of(ks, func(k *Kind) bool { return k.Memory != nil }, func(k *Kind) *Memory { return k.Memory })
	return slices.Compact(all)
}

// Colours returns the engines' own colours by name.
func (ks Kinds) Colours() map[string]int {
	out := map[string]int{}
	for _, k := range ks {
		if k.Colour > 0 {
			out[k.Name] = k.Colour
		}
	}
	return out
}

// Titles returns the engines' names for people, by the names in records.
func (ks Kinds) Titles() map[string]string {
	out := map[string]string{}
	for _, k := range ks {
		out[k.Name] = k.Title
	}
	return out
}

// Sections returns one kind for each section of plans.
func (ks Kinds) Sections() Kinds {
	var out Kinds
	for _, k := range ks {
		if k.Config != nil && !slices.ContainsFunc(out, func(o *Kind) bool { return o.Section == k.Section }) {
			out = append(out, k)
		}
	}
	return out
}

// Known refuses unknown engines, and two that would have the same name in records.
func (ks Kinds) Known(names []string) error {
	typed := map[string]string{} // by names in records
	for _, name := range names {
		k, rest := ks.Of(name)
		if k == nil {
			do := "engines: " + ks.List()
			if meant := ks.meant(name); meant != "" {
				do = fmt.Sprintf("did you mean %q? Engines: %s", meant, ks.List())
			}
			return fault.New(fault.UnknownEngine, do, "unknown engine %q", name)
		}
		called := name
		if k.Called != nil {
			var err error
			if called, err = k.Called(rest); err != nil {
				return err
			}
		}
		if other, twice := typed[called]; twice && other != name {
			return fault.New(fault.Usage, "name one of them, as in "+k.Name+"NAME=PATH",
				"engines %q and %q would both be named %s in the record", other, name, called)
		}
		typed[called] = name
	}
	return nil
}

// scripts end the names of programs that people run by path.
var scripts = []string{".py", ".sh", ".js", ".rb", ".pl", ".exe"}

// meant guesses the intended name; empty if none is similar. A path, and a file's name, is taken for a program.
func (ks Kinds) meant(name string) string {
	head, rest, _ := strings.Cut(name, ":")
	var likely []string
	for _, k := range ks {
		if k.begins() && strings.Contains(head, "/") {
			return k.Name + name
		}
		if k.begins() && slices.Contains(scripts, filepath.Ext(head)) {
			return k.Name + "./" + name
		}
		likely = append(likely, strings.TrimSuffix(k.Name, ":"))
	}
	nearest := nearest.Similar(head, likely)
	if k, _ := ks.Of(nearest + ":"); k != nil {
		return k.Name + cmp.Or(rest, "PATH")
	}
	return nearest
}

// Used refuses flags that none of the engines uses.
func (ks Kinds) Used(engines []string, given func(string) bool) error {
	for _, k := range ks {
		for _, flag := range k.Flags() {
			uses := func(k *Kind) bool { return k.Uses(flag) }
			if given(flag) && !slices.ContainsFunc(engines, func(name string) bool {
				k, _ := ks.Of(name)
				return k != nil && uses(k)
			}) {
				all := strings.Join(of(ks, uses, (*Kind).Shown), " or ")
				return fault.New(fault.Usage, "omit it, or add "+all+" to --engines", "--%s applies only to %s", flag,
					all)
			}
		}
	}
	return nil
}
