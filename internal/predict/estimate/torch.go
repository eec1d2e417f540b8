package estimate

import (
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/hfconfig"
)

// Transformers is an engine that llmparity only predicts.
var Transformers = &engine.Memory{Name: "transformers", Title: "transformers", Runtime: "torch", FourBits: "nf4",
	KVTypes: []string{"f32", "f16", "bf16", "int8"},
	Program: engine.Program{Bytes: 0.6 * gib, Devices: true, Low: 0.5, High: 2,
		How: "rule of thumb: a CUDA context, cuBLAS workspace and PyTorch's rounding on each device; similar on a CPU"}}

// TorchSettings are the settings of torch.
type TorchSettings struct {
	OnCPU bool // there is no GPU
}

// torch is PyTorch with Hugging Face's transformers.
type torch struct{ usual }

func (torch) traits() traits { return traits{name: "torch", flags: []string{"ram-gb"}, wholly: true} }

func (torch) suits(Model, Setup) bool { return true }

func (torch) converted(e *Estimate) (c converted, ok bool) {
	if !e.ofGGUF() {
		return c, false
	}
	return e.dequantised(), true
}

func (torch) computes(e *Estimate) string {
	if e.ofGGUF() && e.Setup.DType == "" {
		return "f32"
	}
	return usual{}.computes(e)
}

// row has the keys and values of a latent, which are cached expanded.
func (torch) row(c hfconfig.Cache) (values, keys int64) {
	if c.Expanded > 0 {
		return c.Expanded, c.ExpandedKeys
	}
	return c.Values, c.Keys
}

func (torch) onGPU(s Setup) bool { return s.OnGPU || s.GPULayers > 0 || !s.OnCPU }

func (torch) place(s *Setup, m Machine) error {
	vram := s.GPUMemoryGiB > 0
	if vram && m.RAM {
		return noEffect("ram-gb", "omit one of them", "with --gpu-memory-gb, %s keeps the model in GPU memory",
			s.Engine.Title)
	}
	s.OnCPU = m.RAM || !vram && m.NoGPU()
	return nil
}

// noEffect refuses a flag.
func noEffect(flag, do, why string, args ...any) error {
	return fault.New(fault.Usage, do, "--"+flag+" has no effect: "+why, args...)
}
