package estimate

import (
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/kit/fault"
	"llmparity/internal/predict/layout"
)

// format returns how weights are stored that are not as in the files. named reads the name of a format.
func (e *Estimate) format(named func(name string) (layout.Format, error)) (layout.Format, error) {
	m, plain := e.Model, e.plain
	switch name := strings.ToLower(e.Setup.Quantization); {
	case name != "":
		return named(name)
	case m.Quantized == nil || m.Stored != nil:
		return layout.Format{Name: plain.Name, Plain: plain}, nil
	}
	return layout.Quantized(m.Quantized, plain, m.Layers), nil
}

// unquantised returns the dtype of everything that is not quantised.
func (e *Estimate) unquantised() (dtype.DType, error) {
	name, given := e.Setup.DType, true
	if name == "" || name == "auto" {
		name, given = e.Model.DType, false
	}
	r := e.runtime()
	if as, ok := r.lacks[dtype.Canonical(name)]; ok {
		name = as
	} else if as, ok := r.replaces[dtype.Canonical(name)]; ok && !given {
		name = as
	}
	if name == "" {
		return layout.Float16, nil
	}
	n, ok := dtype.Number(name)
	if !ok && e.Setup.DType == "" {
		return layout.Float16, nil
	}
	if !ok || n.Bits() > 32 || n.Bits() < 8 || n.Name == "i16" || n.Name == "i32" {
		what := "--dtype"
		if e.Setup.DType == "" {
			what = "the model's dtype"
		}
		return n, fault.New(fault.Usage, "give --dtype float32, float16, bfloat16, fp8 or int8", "%s %s is not supported",
			what, name)
	}
	return n, nil
}

// named returns the format of weights that a user names.
func (e *Estimate) named(name string) (layout.Format, error) {
	if f, ok := layout.Packed(name); ok && f.Scales == "" {
		return f, nil
	} else if ok {
		return f, notMLC(e.Setup.Engine.Title, name)
	}
	if f, ok := layout.Mixture(name, e.Model, nil); ok {
		return f, nil
	}
	return e.method(name)
}

// method returns an unquantised format of a name, or that of a quantisation method.
func (e *Estimate) method(name string) (layout.Format, error) {
	if n, ok := dtype.Number(name); ok && n.Bits() >= 16 {
		return layout.Format{Name: n.Name, Plain: n}, nil
	}
	q, err := layout.Method(name, e.Setup.GroupSize)
	if err != nil {
		return layout.Format{}, err
	}
	return layout.Quantized(q, e.plain, e.Model.Layers), nil
}

// notMLC refuses a format of weights that only packages have, for another runtime.
func notMLC(title, name string) error {
	return fault.New(fault.Usage, "choose a GGUF type (q4_0), or --engine webllm", "%s does not run MLC's format %s", title,
		name)
}

// computes returns the dtype of activations: that of everything unquantised, if arithmetic has it.
func (e *Estimate) computes() string {
	if e.plain.Bits() < 16 {
		return "bf16"
	}
	return e.plain.Name
}

// fixed refuses dtypes for a model that has its own.
func (s Setup) fixed(m Model) error {
	for _, f := range []struct{ name, value string }{{"--quantization", s.Quantization}, {"--dtype", s.DType},
		{"--kv-cache-dtype", s.KVDType}} {
		if m.Only != "" && f.value != "" && !(f.name == "--kv-cache-dtype" && hasKV(m, f.value)) {
			return fault.New(fault.Usage, "omit it", "%s %s has no effect on package %s, which has fixed dtypes (%s)",
				f.name, f.value, m.Name, m.DType)
		}
	}
	return nil
}

// hasKV reports whether a dtype is that of a package's KV cache, which is the dtype of its activations.
func hasKV(m Model, given string) bool {
	own := "f32"
	if strings.Contains(m.DType, "f16") {
		own = "f16"
	}
	return dtype.Canonical(given) == own
}
