// Package fit answers whether a model fits: into this machine, or into one that is described. It starts nothing and
// measures nothing; what it says of memory is arithmetic, and what is free here is what the system says at that moment.
package fit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"llmparity/browser"
	"llmparity/internal/catalogue"
	"llmparity/internal/engine"
	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/resolve"
	"llmparity/internal/sample/gpu"
)

// Question is what is asked of a model, and of a machine where it is not this one.
type Question struct {
	Numbers    estimate.Numbers // of a model without a file
	Engine     string           // by its name; empty: by the kind of model
	Engines    []*engine.Memory // that there are
	Setup      estimate.Setup
	FreeGiB    float64 // of memory, or of a GPU's
	RAMGiB     float64
	BufferMiB  float64 // the adapter's largest buffer
	BindingMiB float64 // and storage binding
	Adapter    string
	NoF16      bool
	Mirror     string
	Catalogue  func() (catalogue.Catalogue, error)
	path       string // of the model's file or folder
}

// Answer is what a model takes, and whether it fits.
type Answer struct {
	estimate.Estimate
	Risk record.Risk
	Fit  estimate.Fit
}

// Ask answers for a model, by its name, or by the question's numbers where that is empty. given tells which flags were
// written: one that would change nothing is refused.
func (q *Question) Ask(ctx context.Context, name string, given func(flag string) bool) (Answer, error) {
	m, err := q.model(ctx, name)
	if err == nil {
		err = q.place(m, given)
	}
	if err != nil {
		return Answer{}, err
	}
	return q.estimate(ctx, m)
}

// place settles where an engine's memory lies, and refuses flags that would change nothing in that engine.
func (q *Question) place(m estimate.Model, given func(string) bool) error {
	s := &q.Setup
	adapter, err := browser.ParseAdapter(q.Adapter)
	if err == nil {
		s.Engine, err = estimate.Choose(q.Engines, q.Engine, m, *s)
	}
	if err != nil {
		return err
	}
	runtime := s.Engine.Runtime
	refuse := func(flag, do, why string, args ...any) error {
		return fault.New(fault.Usage, do, "--%s changes nothing here: %s", flag, fmt.Sprintf(why, args...))
	}
	for _, c := range []struct {
		flag, why string
		runtimes  []engine.Runtime
	}{
		{"adapter", "%s has no WebGPU", []engine.Runtime{engine.MLC}},
		{"max-buffer-mb", "%s has no WebGPU buffers", []engine.Runtime{engine.MLC}},
		{"max-binding-mb", "%s has no WebGPU buffers", []engine.Runtime{engine.MLC}},
		{"no-shader-f16", "%s has no WebGPU", []engine.Runtime{engine.MLC}},
		{"gpu-layers", "%s does not divide a model between a GPU and memory",
			[]engine.Runtime{engine.GGML}},
		{"ram-gb", "%s holds its model in the GPU's memory, and what it takes of the machine's is not predicted",
			[]engine.Runtime{engine.MLC, engine.GGML, engine.Torch}},
	} {
		if given(c.flag) && !slices.Contains(c.runtimes, runtime) {
			return refuse(c.flag, "leave it out", c.why, s.Engine.Name)
		}
	}
	switch vram := s.GPUMemoryGiB > 0; {
	case q.FreeGiB > 0 && (q.RAMGiB > 0 || vram):
		return fault.New(fault.Usage, "give --ram-gb and --gpu-memory-gb", "--free-gb stands for both of them")
	case runtime == engine.MLC && vram && adapter == browser.SwiftShader:
		return refuse("gpu-memory-gb", "leave one of them out",
			"with --adapter swiftshader everything lies in the machine's memory")
	case runtime == engine.GGML && !s.Engine.Itself && vram && s.GPULayers == 0:
		return refuse("gpu-memory-gb", "give --gpu-layers, or leave it out", "%s puts no layers on a GPU",
			s.Engine.Title)
	case runtime == engine.Torch && vram && q.RAMGiB > 0:
		return refuse("ram-gb", "leave one of them out",
			"with --gpu-memory-gb transformers holds its model in the GPU's memory")
	case runtime == engine.MLC:
		s.OnGPU = vram || !adapter.Software()
	case s.Engine.Itself:
		s.OnGPU = vram || s.GPULayers > 0
	case runtime == engine.Torch:
		s.OnCPU = q.RAMGiB > 0 || !vram && q.FreeGiB == 0 && browser.Auto.Software()
	}
	return nil
}

// estimate predicts, and judges by what there is: here and now, or on the machine that flags describe.
func (q *Question) estimate(ctx context.Context, m estimate.Model) (Answer, error) {
	e, err := estimate.Of(m, q.Setup)
	if err != nil {
		return Answer{}, err
	}
	rooms, s := q.rooms(ctx, e), &q.Setup
	var notes []string
	vram, ok := rooms[estimate.VRAM]
	switch {
	case ok && s.Engine.Itself && s.GPULayers == 0: // it takes as many as have room
		s.GPULayers = e.LayersIn(vram.Free)
		s.OnGPU = s.GPULayers > 0
		if e, err = estimate.Of(m, *s); err != nil {
			return Answer{}, err
		}
		notes = append(notes, fmt.Sprintf("%s puts %d of %d layers on the GPU: as many as have room", s.Engine.Title,
			s.GPULayers, m.Layers))
	case s.Engine.Runtime == engine.GGML && !s.Engine.Itself && s.KVDType == "" && !s.NoFlash:
		notes = append(notes, "KV cache and flash attention are as "+s.Engine.Title+" chooses them; a run sets "+
			"--kv-cache-dtype f32 and --no-flash-attention unless it is told otherwise")
	case e.NeedsF16() && s.OnGPU && !q.NoF16:
		notes = append(notes, "the adapter must have shader-f16, as most GPUs have; --no-shader-f16 says that it has not")
	}
	e.Warnings = append(e.Warnings, notes...)
	r := e.Risk(rooms)
	return Answer{e, r, e.Fit(r, q.refused(e))}, nil
}

// refused says why WebLLM would not run the model on the adapter; "" where it would, or in another engine.
func (q *Question) refused(e estimate.Estimate) string {
	switch {
	case e.Setup.Engine.Runtime != engine.MLC:
		return ""
	case e.NeedsF16() && q.NoF16:
		return "needs f16, and the adapter has no shader-f16"
	case e.NeedsF16() && !e.Setup.OnGPU:
		return "needs f16, and SwiftShader has no shader-f16"
	case e.Model.Source == "gguf":
		return unrunnable(q.path, e.Setup.Context)
	}
	return ""
}

// rooms are what there is of each place.
func (q *Question) rooms(ctx context.Context, e estimate.Estimate) map[string]estimate.Room {
	s := e.Setup
	var gpus *gpu.Monitor
	for _, n := range e.Needs() {
		if n.Place == estimate.VRAM && s.GPUMemoryGiB == 0 && q.FreeGiB == 0 && gpus == nil {
			gpus = gpu.Open(ctx, gpu.Options{})
			defer gpus.Close()
		}
	}
	rooms := resolve.Rooms(ctx, e, gpus)
	set := func(place string, gib float64, how string) {
		if gib > 0 {
			rooms[place] = estimate.Room{Free: int64(gib * (1 << 30)), How: how}
		}
	}
	set(estimate.RAM, q.FreeGiB, "--free-gb")
	set(estimate.VRAM, q.FreeGiB, "--free-gb")
	set(estimate.RAM, q.RAMGiB, "--ram-gb")
	vram, how := s.GPUMemoryGiB*float64(max(s.TensorParallel, 1)), "--gpu-memory-gb of all devices"
	if s.Engine.Runtime == engine.VLLM {
		vram *= s.GPUUtilization
		how = fmt.Sprintf("the %.0f%% of --gpu-memory-gb that vLLM takes up front", 100*s.GPUUtilization)
	}
	set(estimate.VRAM, vram, how)
	if s.Engine.Runtime == engine.MLC {
		rooms[estimate.Buffer] = q.bufferRoom(s.OnGPU)
	}
	return rooms
}

// bufferRoom is the largest buffer that WebLLM has of the adapter, by the flags.
func (q *Question) bufferRoom(onGPU bool) estimate.Room {
	limit := func(said float64) int64 { return cmp.Or(int64(said*(1<<20)), estimate.SwiftShaderBuffer) }
	if q.BufferMiB > 0 || q.BindingMiB > 0 {
		room := estimate.Grants(limit(q.BufferMiB), limit(q.BindingMiB))
		room.How = "by --max-buffer-mb and --max-binding-mb: " + room.How
		return room
	}
	return estimate.LargestBuffer(onGPU)
}
