package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/models/modelsize"
)

// webGPU is WebGPU in a browser, for a runtime that asks an adapter for buffers of that size.
func webGPU(b buffers) device {
	return device{single: true, buffer: b, places: inBrowser{},
		flags: []string{"adapter", "max-buffer-mb", "max-binding-mb", "no-shader-f16", "ram-gb"}}
}

// buffers are the sizes that a runtime asks an adapter for: wished, or else fallback and GrantedBuffer; 0: unknown.
type buffers struct{ wished, fallback int64 }

// inBrowser has WebGPU's limits, WebAssembly's, and those of the page.
type inBrowser struct{}

// NeedsF16 reports whether the WebGPU adapter must have shader-f16.
func (e Estimate) NeedsF16() bool {
	_, is := e.runtime().device.places.(inBrowser)
	return is && e.DTypes.Activations == "f16"
}

// needs returns the needs that a browser limits: the largest WebGPU buffer, WebAssembly memory, and the renderer.
func (inBrowser) needs(e Estimate) []Need {
	m := e.Model
	largest, what := e.largest(), largestTensor
	layers := 0
	for _, c := range m.Caches {
		layers += c.Layers
	}
	if layers > 0 {
		if n := e.Component(KVReserved).Best / int64(layers); n > largest {
			largest, what = n, "the KV cache of one layer"
		}
	}
	if m.Stated != nil {
		largest, what = m.Stated.Buffer, "the model, as "+m.Stated.By+" states,"
	}
	wasm := int64(49*mib + 72*m.Vocab)
	staged := e.Component(Framework)
	out := []Need{{Place: Wasm, Best: wasm, High: wasm + wasm/2, Hard: true,
		What: e.Setup.Engine.Title + "'s runtime and the tokenizer"},
		{Place: Renderer, Best: staged.Best, High: staged.High, Hard: true,
			What: "the page and copies of weights in transit"}}
	if largest > 0 {
		out = append(out, Need{Place: Buffer, Best: largest, High: largest, Hard: true, What: what})
	}
	return out
}

const largestTensor = "the largest tensor"

// largest returns the size of the largest tensor: the package's, or calculated from the model's shape. Packages store
// gate and up projection as one tensor, and queries, keys and values as one.
func (e Estimate) largest() int64 {
	m := e.Model
	if len(e.packed) > 0 {
		return slices.Max(e.packed)
	}
	if m.Largest > 0 {
		return m.Largest
	}
	var all, most float64
	for _, w := range m.Weights {
		all += float64(w.Values())
		if w.Name != modelsize.AllLayers {
			most = max(most, float64(w.Rows)*float64(w.Cols))
		}
	}
	if h := float64(m.Hidden); m.Active == 0 { // experts: Inter spans several tensors
		most = max(most, 2*h*float64(m.Inter), h*float64((m.Heads+2*m.KVHeads)*m.HeadDim))
	}
	if all == 0 {
		return 0
	}
	return int64(float64(e.Component(Weights).Best) * min(most/all, 1))
}

// Sizes of WebGPU buffers.
const (
	GrantedBuffer     = 1 << 27 // storage binding that every adapter has
	SwiftShaderBuffer = 1 << 30 // SwiftShader's limit in current Chromium
)

func (inBrowser) place(s *Setup, m Machine) error {
	vram := s.GPUMemoryGiB > 0
	if vram && m.Adapter.CPU {
		return noEffect("gpu-memory-gb", "omit one of them", "--adapter %s keeps everything in main memory", m.Adapter.Name)
	}
	s.OnGPU = vram || !m.Adapter.Software
	return nil
}

// judge says what the adapter means for the model, and the largest buffer that the engine gets from it, by the flags.
func (inBrowser) judge(e Estimate, m Machine) (j judgement) {
	s, f16 := e.Setup, e.NeedsF16()
	switch {
	case f16 && m.NoF16:
		j.refused = "needs f16; the adapter has no shader-f16" + e.inF32()
	case f16 && !s.OnGPU && !m.Adapter.F16:
		j.refused = "needs f16; SwiftShader has no shader-f16" + e.inF32()
	}
	switch {
	case !s.OnGPU && m.Adapter.Any:
		j.assumed = "this assumes WebGPU on the CPU (SwiftShader), because this machine has no GPU; for a GPU, give its " +
			"memory with --gpu-memory-gb"
	case f16 && s.OnGPU && !m.NoF16:
		j.assumed = "this assumes an adapter with shader-f16, as most GPUs have; if yours has none, add --no-shader-f16"
	}
	limit := func(mib float64) int64 { return cmp.Or(int64(mib*(1<<20)), SwiftShaderBuffer) }
	room := e.Buffer(m.Adapter.Buffer, m.Adapter.Binding)
	if m.BufferMiB > 0 || m.BindingMiB > 0 {
		room = e.Buffer(limit(m.BufferMiB), limit(m.BindingMiB))
		room.How = "with --max-buffer-mb and --max-binding-mb: " + room.How
	}
	j.rooms = map[string]Room{Buffer: room}
	return j
}

// inF32 returns the advice that makes the model run without f16, or "". It names only flags that have this effect.
func (e Estimate) inF32() string {
	if e.Model.Only != "" {
		return "; use a package in f32, such as one in q4f32_1"
	}
	dtype, quantization := e.asked, e.asked
	dtype.DType = "f32"
	quantization.Quantization = "q4f32_1"
	if own := strings.ToLower(e.asked.Quantization); strings.Contains(own, "f16") {
		quantization.Quantization = strings.NewReplacer("bf16", "f32", "f16", "f32").Replace(own)
	}
	var flags []string
	if c, err := Of(e.Model, dtype); err == nil && !c.NeedsF16() {
		flags = append(flags, "--dtype f32")
	}
	file := e.Model.GGUF() && e.asked.Quantization == "" // has its own format
	if c, err := Of(e.Model, quantization); err == nil && !c.NeedsF16() && !file {
		flags = append(flags, "--quantization "+quantization.Quantization)
	}
	if len(flags) == 0 {
		return ""
	}
	return "; use " + strings.Join(flags, " or ")
}

// Buffer returns the largest buffer that the engine gets from a WebGPU adapter with these limits; 0: unknown.
func (e Estimate) Buffer(whole, bound int64) Room {
	asks, s := e.runtime().device.buffer, e.Setup
	name := s.Engine.Title
	if asks.wished == 0 {
		return Room{}
	}
	if whole == 0 && bound == 0 {
		if s.OnGPU {
			return Room{Free: asks.wished, How: name + "'s request to a GPU"}
		}
		return Room{Free: SwiftShaderBuffer, How: "SwiftShader's limit"}
	}
	room := Room{Free: asks.wished, How: name + "'s request to the adapter"}
	if whole < asks.wished {
		room.Free = asks.fallback
	}
	if bound < asks.wished {
		room.Free = min(room.Free, GrantedBuffer)
	}
	limits := fmt.Sprintf("maxBufferSize is %d and maxStorageBufferBindingSize is %d", whole, bound)
	switch {
	case whole < asks.fallback || bound < GrantedBuffer:
		room = Room{How: limits + "; " + name + " does not start with these limits"}
	case room.Free < asks.wished:
		room.How = limits + "; " + name + " then requests less"
	}
	return room
}
