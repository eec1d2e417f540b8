package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"llmparity/browser"
	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/resolve"
	"llmparity/internal/sample/gpu"
)

// place settles where an engine's memory lies, and refuses flags that would change nothing in that engine.
func (f *estimateFlags) place(m estimate.Model, given func(string) bool) error {
	s := &f.setup
	engine := s.EngineFor(m)
	adapter, err := browser.ParseAdapter(f.adapter)
	if err != nil {
		return err
	}
	refuse := func(flag, do, why string, args ...any) error {
		return fault.New(fault.Usage, do, "--%s changes nothing here: %s", flag, fmt.Sprintf(why, args...))
	}
	for _, c := range []struct {
		flag, why string
		engines   []string
	}{
		{"adapter", "%s has no WebGPU", []string{estimate.WebLLM}},
		{"max-buffer-mb", "%s has no WebGPU buffers", []string{estimate.WebLLM}},
		{"max-binding-mb", "%s has no WebGPU buffers", []string{estimate.WebLLM}},
		{"no-shader-f16", "%s has no WebGPU", []string{estimate.WebLLM}},
		{"gpu-layers", "%s does not divide a model between a GPU and memory",
			[]string{estimate.LlamaCPP, estimate.Ollama}},
		{"ram-gb", "%s holds its model in the GPU's memory, and what it takes of the machine's is not predicted",
			[]string{estimate.WebLLM, estimate.LlamaCPP, estimate.Ollama, estimate.Transformers}},
	} {
		if given(c.flag) && !slices.Contains(c.engines, engine) {
			return refuse(c.flag, "leave it out", c.why, engine)
		}
	}
	switch vram := s.GPUMemoryGiB > 0; {
	case f.freeGiB > 0 && (f.ramGiB > 0 || vram):
		return fault.New(fault.Usage, "give --ram-gb and --gpu-memory-gb", "--free-gb stands for both of them")
	case engine == estimate.WebLLM && vram && adapter == browser.SwiftShader:
		return refuse("gpu-memory-gb", "leave one of them out",
			"with --adapter swiftshader everything lies in the machine's memory")
	case engine == estimate.LlamaCPP && vram && s.GPULayers == 0:
		return refuse("gpu-memory-gb", "give --gpu-layers, or leave it out", "llama.cpp puts no layers on a GPU")
	case engine == estimate.Transformers && vram && f.ramGiB > 0:
		return refuse("ram-gb", "leave one of them out",
			"with --gpu-memory-gb transformers holds its model in the GPU's memory")
	case engine == estimate.WebLLM:
		s.OnGPU = vram || !adapter.Software()
	case engine == estimate.Ollama:
		s.OnGPU = vram || s.GPULayers > 0
	case engine == estimate.Transformers:
		s.OnCPU = f.ramGiB > 0 || !vram && f.freeGiB == 0 && browser.Auto.Software()
	}
	return nil
}

// estimate predicts, and judges by what there is: here and now, or on the machine that flags describe.
func (f *estimateFlags) estimate(ctx context.Context, m estimate.Model) (e estimate.Estimate, r record.Risk,
	fit estimate.Fit, err error) {
	if e, err = estimate.Of(m, f.setup); err != nil {
		return e, r, fit, err
	}
	rooms, s := f.rooms(ctx, e), &f.setup
	var notes []string
	vram, ok := rooms[estimate.VRAM]
	switch {
	case ok && s.Engine == estimate.Ollama && s.GPULayers == 0: // it takes as many as have room
		s.GPULayers = e.LayersIn(vram.Free)
		s.OnGPU = s.GPULayers > 0
		if e, err = estimate.Of(m, *s); err != nil {
			return e, r, fit, err
		}
		notes = append(notes, fmt.Sprintf("Ollama puts %d of %d layers on the GPU: as many as have room", s.GPULayers,
			m.Layers))
	case e.Setup.Engine == estimate.LlamaCPP && s.KVDType == "" && !s.NoFlash:
		notes = append(notes, "KV cache and flash attention are as llama.cpp chooses them; a run sets "+
			"--kv-cache-dtype f32 and --no-flash-attention unless it is told otherwise")
	case e.NeedsF16() && s.OnGPU && !f.noF16:
		notes = append(notes, "the adapter must have shader-f16, as most GPUs have; --no-shader-f16 says that it has not")
	}
	e.Warnings = append(e.Warnings, notes...)
	r = e.Risk(rooms)
	return e, r, e.Fit(r, f.refused(e)), nil
}

// refused says why WebLLM would not run the model on the adapter; "" where it would, or in another engine.
func (f *estimateFlags) refused(e estimate.Estimate) string {
	switch {
	case e.Setup.Engine != estimate.WebLLM:
		return ""
	case e.NeedsF16() && f.noF16:
		return "needs f16, and the adapter has no shader-f16"
	case e.NeedsF16() && !e.Setup.OnGPU:
		return "needs f16, and SwiftShader has no shader-f16"
	case e.Model.Source == "gguf":
		return unrunnable(f.path, e.Setup.Context)
	}
	return ""
}

// rooms are what there is of each place.
func (f *estimateFlags) rooms(ctx context.Context, e estimate.Estimate) map[string]estimate.Room {
	s := e.Setup
	var gpus *gpu.Monitor
	for _, n := range e.Needs() {
		if n.Place == estimate.VRAM && s.GPUMemoryGiB == 0 && f.freeGiB == 0 && gpus == nil {
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
	set(estimate.RAM, f.freeGiB, "--free-gb")
	set(estimate.VRAM, f.freeGiB, "--free-gb")
	set(estimate.RAM, f.ramGiB, "--ram-gb")
	vram, how := s.GPUMemoryGiB*float64(max(s.TensorParallel, 1)), "--gpu-memory-gb of all devices"
	if s.Engine == estimate.VLLM {
		vram *= s.GPUUtilization
		how = fmt.Sprintf("the %.0f%% of --gpu-memory-gb that vLLM takes up front", 100*s.GPUUtilization)
	}
	set(estimate.VRAM, vram, how)
	if s.Engine == estimate.WebLLM {
		rooms[estimate.Buffer] = f.bufferRoom(s.OnGPU)
	}
	return rooms
}

// bufferRoom is the largest buffer that WebLLM has of the adapter, by the flags.
func (f *estimateFlags) bufferRoom(onGPU bool) estimate.Room {
	limit := func(said float64) int64 {
		if said > 0 {
			return int64(said * (1 << 20))
		}
		return estimate.SwiftShaderBuffer
	}
	if f.bufferMiB > 0 || f.bindingMiB > 0 {
		room := estimate.Grants(limit(f.bufferMiB), limit(f.bindingMiB))
		room.How = "by --max-buffer-mb and --max-binding-mb: " + room.How
		return room
	}
	return estimate.LargestBuffer(onGPU)
}

func printRisk(w io.Writer, r record.Risk) {
	fmt.Fprintf(w, "\nRisk of running out of memory: %s\n", r.Level)
	for _, p := range r.Places {
		fmt.Fprint(w, folded(fmt.Sprintf("- %s: %s of %s (%s): %s", p.Name, mebi(p.Need), mebi(p.Free), p.How,
			p.Level)))
	}
	for _, reason := range r.Reasons {
		fmt.Fprint(w, folded("! "+reason))
	}
	for _, advice := range r.Recommendations {
		fmt.Fprint(w, folded("> "+advice))
	}
}

// mebi is a size for people.
func mebi(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/record.MiB)
}
