package estimate

import (
	"slices"

	"llmparity/internal/engine"
)

// Machine is what a user says about the machine, beside its memory.
type Machine struct {
	RAM     bool // the size of main memory is given
	NoGPU   func() bool
	Adapter engine.Adapter
	NoF16   bool // the WebGPU adapter has no shader-f16
	// BufferMiB and BindingMiB are the adapter's largest buffer and storage binding.
	BufferMiB, BindingMiB float64
}

// placer settles where a model is on a machine.
type placer interface {
	// place settles on which device the model is, and refuses flags that contradict.
	place(s *Setup, m Machine) error
	// rooms sets what it gets of the places, and buffer what it gets of an adapter with these limits; 0: unknown.
	rooms(e Estimate, m Machine, rooms map[string]Room)
	buffer(s Setup, whole, bound int64) Room
	// refused returns why it cannot run the model on this machine, or "".
	refused(e Estimate, m Machine) string
	// notes says what is assumed, or "".
	notes(e Estimate, m Machine) string
	// published returns what is predicted for a package, of which the model that it was made from is known. only names
	// the engines that run packages.
	published(s *Setup, m, of Model, only string) Model
}

func (usual) place(*Setup, Machine) error { return nil }

func (usual) rooms(Estimate, Machine, map[string]Room) {}

func (usual) buffer(Setup, int64, int64) Room { return Room{} }

func (usual) refused(Estimate, Machine) string { return "" }

func (usual) notes(Estimate, Machine) string { return "" }

func (usual) published(_ *Setup, _, of Model, only string) Model {
	return of.Noted("predicted for the published %s weights, because the package is for %s only", of.DType, only)
}

// flagNeeds says of flags about the machine why they have no effect on a runtime that does not use them.
var flagNeeds = []struct{ flag, why string }{
	{"adapter", "%s has no WebGPU"},
	{"max-buffer-mb", "%s has no WebGPU buffers"},
	{"max-binding-mb", "%s has no WebGPU buffers"},
	{"no-shader-f16", "%s has no WebGPU"},
	{"gpu-layers", "%s does not split a model between GPU and main memory"},
	{"ram-gb", "%s keeps the model in GPU memory; its main memory is not predicted"},
}

// Place settles where the engine keeps the model, and refuses flags without effect on that engine.
func (s *Setup) Place(m Machine, given func(flag string) bool) error {
	r := runtimeOf(s.Engine)
	for _, c := range flagNeeds {
		if given(c.flag) && !slices.Contains(r.traits().flags, c.flag) {
			return noEffect(c.flag, "omit it", c.why, s.Engine.Title)
		}
	}
	return r.place(s, m)
}

// Assumes says what a prediction assumes about the machine, or returns "".
func (e Estimate) Assumes(m Machine) string { return e.runtime().notes(e, m) }

// Refused returns why the machine cannot run the model, or "".
func (e Estimate) Refused(m Machine) string { return e.runtime().refused(e, m) }

// Rooms sets what the engine gets of places that it does not get as a whole.
func (e Estimate) Rooms(m Machine, rooms map[string]Room) { e.runtime().rooms(e, m, rooms) }

// Published returns what is predicted for a package in an engine: it, or the model that it was made from. only names
// the engines that run packages.
func (s *Setup) Published(e *engine.Memory, m, of Model, only string) Model {
	return runtimeOf(e).published(s, m, of, only)
}

// Buffer returns the largest buffer that the engine gets from a WebGPU adapter with these limits; 0: unknown.
func (e Estimate) Buffer(whole, bound int64) Room { return e.runtime().buffer(e.Setup, whole, bound) }

// Share returns the part of each GPU's memory that the engine reserves, whatever the model takes; 0: what it takes.
func (e Estimate) Share() float64 { return e.runtime().share(e.Setup) }

// General reports whether the engine is assumed for any model, without a reason in the model or the machine.
func (s Setup) General() bool { return s.Engine.Runtime == runtimes[len(runtimes)-1].traits().name }
