package estimate

import (
	"cmp"
	"slices"
	"strings"

	"llmparity/internal/models/modelsize"
)

// inBrowser is what runtimes in a browser share: WebGPU's limits, WebAssembly's, and those of the page.
type inBrowser struct{ usual }

func (inBrowser) traits() traits {
	return traits{flags: []string{"adapter", "max-buffer-mb", "max-binding-mb", "no-shader-f16", "ram-gb"}}
}

func (inBrowser) needsF16(e Estimate) bool { return e.DTypes.Activations == "f16" }

// further returns the needs that a browser limits: the largest WebGPU buffer, WebAssembly memory, and the renderer.
func (inBrowser) further(e Estimate) []Need {
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

func (inBrowser) notes(e Estimate, m Machine) string {
	switch s := e.Setup; {
	case !s.OnGPU && m.Adapter.Any:
		return "this assumes WebGPU on the CPU (SwiftShader), because this machine has no GPU; for a GPU, give its memory " +
			"with --gpu-memory-gb"
	case e.NeedsF16() && s.OnGPU && !m.NoF16:
		return "this assumes an adapter with shader-f16, as most GPUs have; if yours has none, add --no-shader-f16"
	}
	return ""
}

// refused returns why the adapter cannot run the model, or "".
func (inBrowser) refused(e Estimate, m Machine) string {
	switch {
	case e.NeedsF16() && m.NoF16:
		return "needs f16; the adapter has no shader-f16" + e.inF32()
	case e.NeedsF16() && !e.Setup.OnGPU && !m.Adapter.F16:
		return "needs f16; SwiftShader has no shader-f16" + e.inF32()
	}
	return ""
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

// rooms sets the largest buffer that the engine gets from the adapter, by the flags.
func (inBrowser) rooms(e Estimate, m Machine, rooms map[string]Room) {
	limit := func(mib float64) int64 { return cmp.Or(int64(mib*(1<<20)), SwiftShaderBuffer) }
	switch {
	case m.BufferMiB > 0 || m.BindingMiB > 0:
		room := e.Buffer(limit(m.BufferMiB), limit(m.BindingMiB))
		room.How = "with --max-buffer-mb and --max-binding-mb: " + room.How
		rooms[Buffer] = room
	default:
		rooms[Buffer] = e.Buffer(m.Adapter.Buffer, m.Adapter.Binding)
	}
}
