package record

import (
	"maps"
	"strconv"
)

// EngineInfo identifies what ran.
type EngineInfo struct {
	Name    string            `json:"name"`
	Title   string            `json:"title,omitempty"` // the name for people, if it differs
	Version string            `json:"version"`
	Commit  string            `json:"commit,omitempty"`  // commit of its source; absent: its build does not state one
	Origin  string            `json:"origin,omitempty"`  // where the engine's code is from: "built in", npm, a file …
	Path    string            `json:"path,omitempty"`    // path of the program
	SHA256  string            `json:"sha256,omitempty"`  // SHA-256 of the program
	Args    []string          `json:"args,omitempty"`    // command line, without secrets
	Parts   map[string]string `json:"parts,omitempty"`   // versions and hashes of parts: browser, user_agent …
	Library *Library          `json:"library,omitempty"` // the model's code; absent: it is the engine's own
	Policy  map[string]string `json:"policy,omitempty"`  // settings: kv_dtype, weights_dtype, threads …
	Layers  *Layers           `json:"layers,omitempty"`  // absent: unknown, or none was to be on a GPU
	Weights Sameness          `json:"weights,omitempty"` // how converted weights compare with the file's; absent: not converted
	// Computes is the library whose kernels compute: ggml, tvm …; absent: unknown.
	Computes string `json:"computes_with,omitempty"`
	Vector   int    `json:"vector_bits,omitempty"` // widest vectors of its CPU kernels; absent: unknown
}

// Layers says how many layers of a model are on a GPU.
type Layers struct {
	GPU int `json:"gpu"`
	All int `json:"all"`
}

// Library is the code of a model that was compiled apart from the engine.
type Library struct {
	Maker   string `json:"maker,omitempty"`       // llmparity, MLC …; absent: unknown, because the user named a file
	Usual   string `json:"usual_maker,omitempty"` // the maker whose libraries the engine's users run
	Kernels string `json:"kernels,omitempty"`     // software, gpu, or mlc (scheduled by MLC's rules); absent: unknown
	Variant string `json:"variant,omitempty"`     // how people tell it from others of its maker
	SHA256  string `json:"sha256,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	Source  string `json:"source,omitempty"` // URL or path; absent: it was compiled on this machine
}

// String names a library for people; empty for nil.
func (l *Library) String() string {
	if l == nil {
		return ""
	}
	if l.Variant != "" {
		return l.Whose() + " (" + l.Variant + ")"
	}
	return l.Whose()
}

// Whose names the maker for people: MLC's.
func (l *Library) Whose() string {
	if l.Maker == "" {
		return "given"
	}
	return l.Maker + "'s"
}

// Unusual reports whether another maker's kernels ran than those that the engine's users run.
func (l *Library) Unusual() bool {
	return l != nil && l.Maker != "" && l.Usual != "" && l.Maker != l.Usual
}

// ByMLC reports whether the kernels are scheduled by MLC's rules, whoever compiled them.
func (l *Library) ByMLC() bool { return l != nil && l.Kernels == MLCKernels }

// Identity has what identifies an engine beside its name, version and program, by name: its origin, its parts, and its
// model library.
func (e *EngineInfo) Identity() map[string]string {
	out := map[string]string{}
	maps.Copy(out, e.Parts)
	set := func(name, value string) {
		if value != "" {
			out[name] = value
		}
	}
	set("origin", e.Origin)
	if e.Vector > 0 {
		set("vectors", strconv.Itoa(e.Vector)+" bits")
	}
	set("model_library", e.Library.String())
	if l := e.Library; l != nil {
		set("model_library_sha256", l.SHA256)
		set("model_library_source", l.Source)
	}
	return out
}
