package estimate

import (
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/kit/fault"
	"llmparity/internal/predict/layout"
)

// format returns how the engine stores the weights.
func (e *Estimate) format() (layout.Format, error) {
	m, plain := e.Model, e.plain
	switch name := strings.ToLower(e.Setup.Quantization); {
	case name != "":
		return e.runtime().named(e, name)
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
	if name = e.runtime().unquantised(name, given); name == "" {
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
