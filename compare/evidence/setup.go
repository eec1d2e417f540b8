package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Setup is what a cell requested, and what it ran on.
type Setup struct {
	Spec   record.Cell        `json:"spec"`
	Device *record.Device     `json:"device,omitempty"`
	Engine *record.EngineInfo `json:"engine_info,omitempty"`
	Ran    []ran.Row          `json:"ran,omitempty"` // what was asked for, and what ran
}

// Subject is a cell without its figures: what it requested, what it ran on, and whose it is.
type Subject struct {
	*Setup
	Run     int    // the number of its run, from 0
	Title   string // the engine's name for people
	Refused bool   // it was not launched
}

// Says returns a setting as the engine reports it; empty if unknown.
func (s *Setup) Says(key string) string {
	if v := s.Policy(key); v != "unknown" {
		return v
	}
	return ""
}

// Policy is Says, with the engine's word for an unknown value.
func (s *Setup) Policy(key string) string {
	if s.Engine == nil {
		return ""
	}
	return s.Engine.Policy[key]
}

// Weights says how weights that the engine converted compare with the file's; empty: it converted none, or unknown.
func (s *Setup) Weights() record.Sameness {
	if s.Engine == nil {
		return ""
	}
	return s.Engine.Weights
}

// Part is a part of the engine, by its name in the record; empty if there is none.
func (s *Setup) Part(name string) string {
	if s.Engine == nil {
		return ""
	}
	return s.Engine.Parts[name]
}

// Foreign reports whether the cell was imported from another program.
func (s *Setup) Foreign() bool { return s.Spec.Model.Format == record.Foreign }

// Repeated names what was repeated: launches, or repetitions in one launch or on a running server.
func (s *Setup) Repeated() string {
	if s.Spec.Reused || s.Spec.Isolation == record.OfServer {
		return "repetition"
	}
	return "launch"
}

// Several is the word for several of what was repeated.
func (s *Setup) Several() string {
	if s.Repeated() == "launch" {
		return "launches"
	}
	return "repetitions"
}

// Context is the context window in tokens, as the engine reports it, else as requested.
func (s *Setup) Context() int {
	if n, err := strconv.Atoi(s.Says("context")); err == nil && n > 0 {
		return n
	}
	return s.Spec.Model.Context
}

// Set has the fields of the engine's section that are axes of the plan, with their values.
func (s *Setup) Set() string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(s.Spec.Settings)) {
		words = append(words, key+" "+s.Spec.Settings[key])
	}
	return strings.Join(words, ", ")
}

// With describes in a line what the engine ran with. It leaves out the engine's name if that is one of the known.
func (s *Setup) With(known ...string) string {
	with := []string{s.version(known), s.Library(), s.DTypes(), s.Threads(), s.Worker(), s.Browser(), s.On(),
		s.capped()}
	return words.Version(strings.Join(slices.DeleteFunc(with, func(s string) bool { return s == "" }), ", "))
}

// Version is the engine's name and version, with its origin if known.
func (s *Setup) Version() string { return s.version(nil) }

func (s *Setup) version(known []string) string {
	if s.Engine == nil {
		return ""
	}
	name, origin := cmp.Or(s.Engine.Title, s.Engine.Name), ""
	if slices.Contains(known, name) {
		name = ""
	}
	if s.Engine.Origin != "" && !s.byFile() {
		origin = "(" + s.Engine.Origin + ")"
	}
	return strings.Join(slices.DeleteFunc([]string{name, s.Engine.Version, origin},
		func(s string) bool { return s == "" }), " ")
}

// byFile reports whether the version names the file that the engine is from.
func (s *Setup) byFile() bool {
	file, of := strings.CutPrefix(s.Engine.Origin, record.OfFile)
	return of && strings.HasPrefix(s.Engine.Version, file)
}

// ShortVersion is Version for labels.
func (s *Setup) ShortVersion() string {
	if s.Engine == nil {
		return ""
	}
	if origin := s.Engine.Origin; origin != "" && origin != record.BuiltIn && !s.byFile() {
		return words.Version(s.Engine.Version) + " from " + origin
	}
	return words.Version(s.Engine.Version)
}

// ModelLibrary is the compiled code of the model; nil if the engine has its own.
func (s *Setup) ModelLibrary() *record.Library {
	if s.Engine == nil {
		return nil
	}
	return s.Engine.Library
}

// Library names the model library.
func (s *Setup) Library() string {
	l := s.ModelLibrary()
	switch {
	case l == nil:
		return ""
	case l.Variant != "":
		return l.Whose() + " library (" + l.Variant + ")"
	}
	return l.Whose() + " library"
}

// ShortLibrary is Library for labels.
func (s *Setup) ShortLibrary() string {
	if l := s.ModelLibrary(); l != nil && l.Maker == record.Llmparity {
		return l.Variant
	}
	return s.ModelLibrary().String()
}

// DTypes are the dtypes of the weights and the KV cache, and what the weights were converted from.
func (s *Setup) DTypes() string {
	weights, kv, from := s.Policy("weights_dtype"), s.Policy("kv_dtype"), ""
	if s.From() != "" && weights != "" {
		from = " from " + s.From()
	}
	if weights == kv || weights == "" || kv == "" {
		return cmp.Or(weights, kv) + from
	}
	return weights + from + ", KV cache " + kv
}

// From is the quantised form that an engine's weights were converted from: what quantisation lost, they have lost.
func (s *Setup) From() string {
	unquantised := func(name string) bool {
		d, _ := dtype.Named(name)
		return name == "" || d.Float()
	}
	m, now := s.Spec.Model, s.Policy("weights_dtype")
	if !unquantised(m.DType) && now != "" && (unquantised(now) || s.Spec.Weights != "" && now != m.DType) {
		return m.DType
	}
	return m.MadeFrom
}

// Threads says how many threads compute.
func (s *Setup) Threads() string {
	switch n := s.Policy("threads"); n {
	case "":
		return ""
	case "1":
		return "1 thread"
	default:
		return n + " threads"
	}
}

// Worker says if the engine ran in a page's worker.
func (s *Setup) Worker() string {
	if s.Policy("thread") == "worker" {
		return "in a worker"
	}
	return ""
}

// Browser is the browser, if any.
func (s *Setup) Browser() string { return s.Part("browser") }

// On is the device.
func (s *Setup) On() string {
	d, name := s.Device, "the CPU"
	if d == nil {
		return ""
	}
	if d.Class != record.CPU {
		name = d.Name
	}
	if d.Origin != "" {
		name += " (" + d.Origin + ")"
	}
	return "on " + name
}

// capped says if the context window is smaller than the model's.
func (s *Setup) capped() string {
	m := s.Spec.Model
	if m.Context <= 0 || m.MaxContext <= m.Context {
		return ""
	}
	return fmt.Sprintf("context capped at %d of the model's %d tokens", m.Context, m.MaxContext)
}
