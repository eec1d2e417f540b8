package estimate

import (
	"maps"
	"slices"

	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
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

// device is where runtimes compute.
type device struct {
	flags  []string // flags about the machine that have an effect, of those that have none elsewhere
	gpu    bool     // on a GPU unless there is none
	single bool     // there is one
	layers bool     // several devices hold whole layers; else parts of each tensor
	wholly bool     // on a GPU there is also the program, and nothing is known of main memory
	buffer buffers
	places
}

// places settles where a model is on a machine.
type places interface {
	// place settles on which device the model is, and refuses flags that contradict.
	place(s *Setup, m Machine) error
	// needs returns needs beside those of main and GPU memory.
	needs(e Estimate) []Need
	// judge says what a machine means for a model.
	judge(e Estimate, m Machine) judgement
}

// judgement is what a machine means for a model. Empty texts mean that there is nothing to say.
type judgement struct {
	refused, assumed string
	rooms            map[string]Room // places that the engine does not get as a whole
}

// The devices that runtimes compute on.
var (
	someGPU  = device{places: anywhere{}} // it can use a GPU
	onlyGPU  = device{gpu: true, wholly: true, places: anywhere{}}
	gpuOrCPU = device{gpu: true, wholly: true, flags: []string{"ram-gb"}, places: eitherOr{}}
	// splitLayers has some layers on a GPU, and the others in main memory.
	splitLayers = device{layers: true, flags: []string{"gpu-layers", "ram-gb"}, places: layerwise{}}
)

type anywhere struct{}

func (anywhere) place(*Setup, Machine) error { return nil }

func (anywhere) needs(Estimate) []Need { return nil }

func (anywhere) judge(Estimate, Machine) judgement { return judgement{} }

type eitherOr struct{ anywhere }

func (eitherOr) place(s *Setup, m Machine) error {
	vram := s.GPUMemoryGiB > 0
	if vram && m.RAM {
		return noEffect("ram-gb", "omit one of them", "with --gpu-memory-gb, %s keeps the model in GPU memory",
			s.Engine.Title)
	}
	s.OnCPU = m.RAM || !vram && m.NoGPU()
	return nil
}

// gpuUnlessRAM is for a server: a machine without a GPU may plan for one that has some.
type gpuUnlessRAM struct{ anywhere }

func (gpuUnlessRAM) place(s *Setup, m Machine) error {
	if s.GPUMemoryGiB > 0 && m.RAM {
		return noEffect("ram-gb", "omit one of them", "with --gpu-memory-gb, %s keeps the model in GPU memory",
			s.Engine.Title)
	}
	s.OnCPU = m.RAM
	return nil
}

type layerwise struct{ anywhere }

func (layerwise) place(s *Setup, _ Machine) error {
	switch vram := s.GPUMemoryGiB > 0; {
	case s.Engine.Itself:
		s.OnGPU = vram || s.GPULayers > 0
	case vram && s.GPULayers == 0:
		return noEffect("gpu-memory-gb", "add --gpu-layers, or omit it", "%s puts no layers on a GPU", s.Engine.Title)
	}
	return nil
}

// noEffect refuses a flag.
func noEffect(flag, do, why string, args ...any) error {
	return fault.New(fault.Usage, do, "--"+flag+" has no effect: "+why, args...)
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
	on := runtimeOf(s.Engine).device
	for _, c := range flagNeeds {
		if given(c.flag) && !slices.Contains(on.flags, c.flag) {
			return noEffect(c.flag, "omit it", c.why, s.Engine.Title)
		}
	}
	return on.place(s, m)
}

// Assumes says what a prediction assumes about the machine or its settings, or returns "".
func (e Estimate) Assumes(m Machine) string {
	if notes := e.runtime().notes; notes != nil {
		return notes(e)
	}
	return e.runtime().device.judge(e, m).assumed
}

// Refused returns why the machine cannot run the model, or "".
func (e Estimate) Refused(m Machine) string { return e.runtime().device.judge(e, m).refused }

// Rooms sets what the engine gets of places that it does not get as a whole.
func (e Estimate) Rooms(m Machine, rooms map[string]Room) {
	maps.Copy(rooms, e.runtime().device.judge(e, m).rooms)
	e.reserved(rooms)
}
