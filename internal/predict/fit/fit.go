// Package fit answers whether a model fits into this machine, or into a machine described by flags. It starts and
// measures nothing: sizes are calculated, and free memory is what the system reports.
package fit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"llmparity/browser"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/record"
)

// Question names the model, and the machine if it is not this one.
type Question struct {
	Numbers    modelsize.Numbers // sizes of a model without a file
	Engine     string            // "": by the kind of model
	Engines    []*engine.Memory  // all engines
	Setup      estimate.Setup
	RAMGiB     float64
	BufferMiB  float64 // the adapter's largest buffer
	BindingMiB float64 // the adapter's largest storage binding
	Adapter    string
	NoF16      bool
	Mirror     string
	Catalogue  func() (catalogue.Catalogue, error)
	path       string // the model's file or folder
}

// Answer is the predicted memory, and whether it fits.
type Answer struct {
	estimate.Estimate
	Risk record.Risk
	Fit  estimate.Fit
}

// Ask answers for a model, by name or, without one, by the question's numbers. given reports whether a flag was set:
// flags without effect are refused.
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

// place settles where the engine keeps the model, and refuses flags without effect on that engine.
func (q *Question) place(m estimate.Model, given func(string) bool) error {
	s := &q.Setup
	adapter, err := browser.ParseAdapter(q.Adapter)
	if err == nil {
		s.Engine, err = estimate.Choose(q.Engines, q.Engine, m, *s)
	}
	if err != nil {
		return err
	}
	s.Started(given("no-flash-attention"))
	runtime := s.Engine.Runtime
	refuse := func(flag, do, why string, args ...any) error {
		return fault.New(fault.Usage, do, "--%s has no effect: %s", flag, fmt.Sprintf(why, args...))
	}
	for _, c := range []struct {
		flag, why string
		runtimes  []engine.Runtime
	}{
		{"adapter", "%s has no WebGPU", []engine.Runtime{engine.MLC}},
		{"max-buffer-mb", "%s has no WebGPU buffers", []engine.Runtime{engine.MLC}},
		{"max-binding-mb", "%s has no WebGPU buffers", []engine.Runtime{engine.MLC}},
		{"no-shader-f16", "%s has no WebGPU", []engine.Runtime{engine.MLC}},
		{"gpu-layers", "%s does not split a model between GPU and main memory",
			[]engine.Runtime{engine.GGML}},
		{"ram-gb", "%s keeps the model in GPU memory; its main memory is not predicted",
			[]engine.Runtime{engine.MLC, engine.GGML, engine.Torch}},
	} {
		if given(c.flag) && !slices.Contains(c.runtimes, runtime) {
			return refuse(c.flag, "omit it", c.why, s.Engine.Title)
		}
	}
	switch vram := s.GPUMemoryGiB > 0; {
	case runtime == engine.MLC && vram && (adapter == browser.SwiftShader || adapter == browser.Lavapipe):
		return refuse("gpu-memory-gb", "omit one of them",
			"--adapter %s keeps everything in main memory", adapter)
	case runtime == engine.GGML && !s.Engine.Itself && vram && s.GPULayers == 0:
		return refuse("gpu-memory-gb", "add --gpu-layers, or omit it", "%s puts no layers on a GPU",
			s.Engine.Title)
	case runtime == engine.Torch && vram && q.RAMGiB > 0:
		return refuse("ram-gb", "omit one of them",
			"with --gpu-memory-gb, transformers keeps the model in GPU memory")
	case runtime == engine.MLC:
		s.OnGPU = vram || !adapter.Software()
	case s.Engine.Itself:
		s.OnGPU = vram || s.GPULayers > 0
	case runtime == engine.Torch:
		s.OnCPU = q.RAMGiB > 0 || !vram && browser.Auto.Software()
	}
	return nil
}

// estimate predicts the memory and compares it with this machine, or the one that the flags describe.
func (q *Question) estimate(ctx context.Context, m estimate.Model) (Answer, error) {
	e, err := estimate.Of(m, q.Setup)
	if err != nil {
		return Answer{}, err
	}
	rooms, s := q.rooms(ctx, e), &q.Setup
	var notes []string
	vram, ok := rooms[estimate.VRAM]
	switch {
	case ok && s.Engine.Itself && s.GPULayers == 0: // it offloads all that fit
		s.GPULayers = e.LayersIn(vram.Free)
		s.OnGPU = s.GPULayers > 0
		if e, err = estimate.Of(m, *s); err != nil {
			return Answer{}, err
		}
		notes = append(notes, fmt.Sprintf("%s puts %d of %d layers on the GPU: as many as fit", s.Engine.Title,
			s.GPULayers, m.Layers))
	case s.Engine.Runtime == engine.GGML && !s.Engine.Itself && e.DTypes.KVCache == "f32" && s.NoFlash:
		notes = append(notes, "KV cache dtype and flash attention are as `llmparity run` starts "+s.Engine.Title+"; for its own "+
			"defaults, add --kv-cache-dtype f16 --no-flash-attention=false")
	case q.Engine == "" && s.Engine.Runtime == engine.Torch:
		notes = append(notes, s.Engine.Title+" is assumed; name another engine with --engine, e.g. webllm or llamacpp")
	case s.Engine.Runtime == engine.MLC && !s.OnGPU && q.Adapter == string(browser.Auto):
		notes = append(notes, "this assumes WebGPU on the CPU (SwiftShader), because this machine has no GPU; for a GPU, give "+
			"its memory with --gpu-memory-gb")
	case e.NeedsF16() && s.OnGPU && !q.NoF16:
		notes = append(notes, "this assumes an adapter with shader-f16, as most GPUs have; if yours has none, add --no-shader-f16")
	}
	e.Warnings = append(e.Warnings, notes...)
	r := e.Risk(rooms)
	return Answer{e, r, e.Fit(r, q.refused(e))}, nil
}

// refused returns why WebLLM cannot run the model on the adapter, or "".
func (q *Question) refused(e estimate.Estimate) string {
	switch {
	case e.Setup.Engine.Runtime != engine.MLC:
		return ""
	case e.NeedsF16() && q.NoF16:
		return "needs f16; the adapter has no shader-f16" + q.inF32(e)
	case e.NeedsF16() && !e.Setup.OnGPU && q.Adapter != string(browser.Lavapipe):
		return "needs f16; SwiftShader has no shader-f16" + q.inF32(e)
	case e.Model.Source == "gguf":
		return unrunnable(q.path, e.Setup.Context)
	}
	return ""
}

// inF32 returns the advice that makes the model run without f16, or "". It names only flags that have this effect.
func (q *Question) inF32(e estimate.Estimate) string {
	if e.Model.Packaged() {
		return "; use a package in f32, such as one in q4f32_1"
	}
	dtype, quantization := q.Setup, q.Setup
	dtype.DType = "f32"
	quantization.Quantization = "q4f32_1"
	if own := strings.ToLower(q.Setup.Quantization); strings.Contains(own, "f16") {
		quantization.Quantization = strings.NewReplacer("bf16", "f32", "f16", "f32").Replace(own)
	}
	var flags []string
	if c, err := estimate.Of(e.Model, dtype); err == nil && !c.NeedsF16() {
		flags = append(flags, "--dtype f32")
	}
	file := e.Model.Source == "gguf" && q.Setup.Quantization == "" // has its own format
	if c, err := estimate.Of(e.Model, quantization); err == nil && !c.NeedsF16() && !file {
		flags = append(flags, "--quantization "+quantization.Quantization)
	}
	if len(flags) == 0 {
		return ""
	}
	return "; use " + strings.Join(flags, " or ")
}

// rooms returns the free memory of each place.
func (q *Question) rooms(ctx context.Context, e estimate.Estimate) map[string]estimate.Room {
	s := e.Setup
	var gpus *gpu.Monitor
	if _, onGPU := e.NeedAt(estimate.VRAM); onGPU && s.GPUMemoryGiB == 0 {
		gpus = gpu.Open(ctx, gpu.Options{})
		defer gpus.Close()
	}
	rooms := resolve.Rooms(ctx, e, gpus)
	set := func(place string, gib float64, how string) {
		if gib > 0 {
			rooms[place] = estimate.Room{Free: int64(gib * (1 << 30)), How: how}
		}
	}
	set(estimate.RAM, q.RAMGiB, "--ram-gb")
	vram, how := s.GPUMemoryGiB*float64(max(s.TensorParallel, 1)), "--gpu-memory-gb, all devices"
	if s.Engine.Runtime == engine.VLLM {
		vram *= s.GPUUtilization
		how = fmt.Sprintf("%.0f%% of --gpu-memory-gb, which vLLM reserves", 100*s.GPUUtilization)
	}
	set(estimate.VRAM, vram, how)
	if s.Engine.Runtime == engine.MLC {
		rooms[estimate.Buffer] = q.bufferRoom(s.OnGPU)
	}
	return rooms
}

// bufferRoom returns the largest buffer that WebLLM gets from the adapter, by the flags.
func (q *Question) bufferRoom(onGPU bool) estimate.Room {
	limit := func(mib float64) int64 { return cmp.Or(int64(mib*(1<<20)), estimate.SwiftShaderBuffer) }
	if q.BufferMiB > 0 || q.BindingMiB > 0 {
		room := estimate.Grants(limit(q.BufferMiB), limit(q.BindingMiB))
		room.How = "with --max-buffer-mb and --max-binding-mb: " + room.How
		return room
	}
	if q.Adapter == string(browser.Lavapipe) {
		return estimate.Grants(4<<30, estimate.GrantedBuffer)
	}
	return estimate.LargestBuffer(onGPU)
}
