// Package differ is the list of what machines, engines and their parts can differ in, for all that compare two of them:
// resuming and reproducing a run, and gates. It knows records only.
//
// A property that one side does not know is a difference that is not Known. Each caller decides what that means.
package differ

import "llmparity/internal/record"

// Kind is what a property belongs to. A gate's under_test has the same names, but for Machine.
type Kind string

// The kinds.
const (
	Machine Kind = "machine" // hardware, and what the firmware or a hypervisor makes of it
	System  Kind = "system"  // the OS, its settings, drivers, and llmparity itself
	Engine  Kind = "engine"
	Library Kind = "library" // the model library, with its kernels
	Kernels Kind = "kernels" // those of a library of the same maker
	Browser Kind = "browser"
	Model   Kind = "model"
)

// Difference is a property that differs.
type Difference struct {
	record.Difference
	Kind Kind `json:"-"`
	// Figures is false if the change does not affect figures, or the property changes all the time.
	Figures bool `json:"changes_figures"`
	// Known is false if one side does not know the property, so that the two may be equal.
	Known bool `json:"-"`
}

// property is something that a T has.
type property[T any] struct {
	name string // for people
	kind Kind
	of   func(T) string // its value for people; empty: unknown
	// alike reports whether two values are as good as equal; nil: they must be equal.
	alike func(was, is T) bool
	idle  bool // it changes by itself, or its changes do not affect figures
	// always is set if a side without it differs from one with it.
	always bool
	// implied goes with the properties of its kind above it: if one of those differs, it says no more.
	implied bool
}

// between compares two by their properties.
func between[T any](properties []property[T], was, is T) []Difference {
	var out []Difference
	seen := map[Kind]bool{}
	for _, p := range properties {
		a, b := p.of(was), p.of(is)
		if a == b || p.alike != nil && p.alike(was, is) || p.implied && seen[p.kind] {
			continue
		}
		known := p.always || a != "" && b != ""
		out = append(out, Difference{record.Difference{What: p.name, Was: a, Is: b}, p.kind, !p.idle, known})
		seen[p.kind] = seen[p.kind] || known
	}
	return out
}

// Machines compares two machines and their systems.
func Machines(was, is record.Environment) []Difference { return between(ofMachine, &was, &is) }

// Devices compares what two engines compute on.
func Devices(was, is record.Device) []Difference { return between(ofDevice, was, is) }

// Tools compares two llmparitys.
func Tools(was, is record.Tool) []Difference { return between(ofTool, was, is) }
