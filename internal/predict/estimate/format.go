package estimate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/models/hfconfig"
)

var (
	float32s, _ = dtype.Named("f32")
	float16s, _ = dtype.Named("f16")
)

// stored is the size of a weight in bytes: quantised values, their scales and zero points, and values left unquantised.
type stored struct{ values, scales, plain int64 }

func (s stored) sum() int64 { return s.values + s.scales + s.plain }

// format is a storage format of weights.
type format struct {
	name   string
	scales string      // dtype of the scales; "": none
	plain  dtype.DType // dtype of what is not quantised
	// all: every matrix is quantised, including embedding and head; otherwise only matrices of the layers.
	all    bool
	matrix func(rows, cols int64, w hfconfig.Weight) stored
	kept   func(hfconfig.Weight) int64 // how many copies stay unquantised; nil: none
	// rough: the mixture of types follows a rule instead of a file. The range then is low to high.
	rough     bool
	low, high float64
}

// bytes returns the size of all copies of a weight.
func (f format) bytes(w hfconfig.Weight) stored {
	quantised := f.matrix != nil && w.Cols > 1 && w.Part != hfconfig.Router && (w.Linear || f.all) &&
		w.Part != hfconfig.Positions
	if !quantised {
		return stored{plain: f.plain.Size(1, w.Values())}
	}
	kept := int64(0)
	if f.kept != nil {
		kept = f.kept(w)
	}
	s := f.matrix(w.Rows, w.Cols, w)
	return stored{s.values * (w.Times - kept), s.scales * (w.Times - kept), f.plain.Size(1, kept*w.Rows*w.Cols)}
}

func bitsOf(n, bits int64) int64 { return (n*bits + 7) / 8 }

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// groupsOf returns the number of groups in a row; a group of 0 is the whole row.
func groupsOf(cols int64, group int) int64 {
	if group <= 0 {
		return 1
	}
	return ceil(cols, int64(group))
}

// format returns how the engine stores the weights.
func (e *Estimate) format() (format, error) {
	m, plain := e.Model, e.plain
	switch name := strings.ToLower(e.Setup.Quantization); {
	case name != "":
		return e.runtime().named(e, name)
	case m.Quantized == nil || m.Stored != nil:
		return format{name: plain.Name, plain: plain}, nil
	}
	return quantizedFormat(m.Quantized, plain, m.Layers), nil
}

// unquantised returns the dtype of everything that is not quantised.
func (e *Estimate) unquantised() (dtype.DType, error) {
	name, given := e.Setup.DType, true
	if name == "" || name == "auto" {
		name, given = e.Model.DType, false
	}
	if name = e.runtime().unquantised(name, given); name == "" {
		return float16s, nil
	}
	n, ok := dtype.Number(name)
	if !ok && e.Setup.DType == "" {
		return float16s, nil
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

// named returns a quantisation method by name, with the defaults of its authors' tools.
func named(name string, group int) (*hfconfig.Quantized, error) {
	known := map[string]hfconfig.Quantized{
		"awq": {Method: "awq", Bits: 4, Group: 128}, "awq_marlin": {Method: "awq", Bits: 4, Group: 128},
		"gptq": {Method: "gptq", Bits: 4, Group: 128}, "gptq_marlin": {Method: "gptq", Bits: 4, Group: 128},
		"gptq-8bit":         {Method: "gptq", Bits: 8, Group: 128},
		"bitsandbytes":      {Method: "bitsandbytes-4bit", Bits: 4, Group: 64},
		"bitsandbytes-4bit": {Method: "bitsandbytes-4bit", Bits: 4, Group: 64},
		"bitsandbytes-8bit": {Method: "bitsandbytes-8bit", Bits: 8},
		"nf4":               {Method: "bitsandbytes-4bit", Bits: 4, Group: 64},
		"nf4-double":        {Method: "bitsandbytes-4bit", Bits: 4, Group: 64, Double: true},
		"fp8":               {Method: "fp8", Bits: 8}, "fp8_e4m3": {Method: "fp8", Bits: 8},
		"fp8_e5m2": {Method: "fp8", Bits: 8}, "e4m3": {Method: "fp8", Bits: 8},
		"e5m2": {Method: "fp8", Bits: 8}, "int8": {Method: "int8", Bits: 8, Symmetric: true},
		"int4":  {Method: "int4", Bits: 4, Group: 128, Symmetric: true},
		"mxfp4": {Method: "mxfp4", Bits: 4, Group: 32}, "nvfp4": {Method: "nvfp4", Bits: 4, Group: 16},
	}
	q, ok := known[name]
	if !ok {
		names := slices.Sorted(maps.Keys(known))
		all := append(slices.Sorted(maps.Keys(mixtures())),
			append(names, "q4f16_1", "q4f32_1", "q3f16_1", "q0f16", "q0f32")...)
		return nil, fault.New(fault.Usage,
			"choose one of "+strings.Join(names, ", ")+", a GGUF type (q4_k_m) or an MLC format (q4f16_1)",
			"--quantization %s is unknown; nearest: %s", name, strings.Join(nearest.Of(name, all, 2), ", "))
	}
	if group > 0 && q.Group > 0 {
		q.Group = group
	}
	return &q, nil
}

// quantizedFormat returns the layout of quantised values and their scales.
func quantizedFormat(q *hfconfig.Quantized, plain dtype.DType, layers int) format {
	f := format{name: q.Method, scales: "f32", plain: plain,
		kept: func(w hfconfig.Weight) int64 { return q.Kept(w, layers) }}
	bits := int64(q.Bits)
	var scales func(rows, cols int64) int64
	switch q.Method {
	case "awq", "compressed-tensors", "int4", "gptq": // per group a 16-bit scale and a packed zero point
		f.name, f.scales = fmt.Sprintf("%s (int%d)", q.Method, q.Bits), "f16"
		scales = func(rows, cols int64) int64 {
			groups := rows * groupsOf(cols, q.Group)
			n := 2 * groups
			if !q.Symmetric || q.Method == "gptq" {
				n += bitsOf(groups, bits)
			}
			if q.Method == "gptq" { // the group of each input
				n += 4 * cols
			}
			return n
		}
	case "bitsandbytes-4bit":
		bits = 4
		scales = func(rows, cols int64) int64 { return 4 * ceil(rows*cols, 64) }
		if q.Double { // 8 bits per block, and a scale and an offset for every 256 blocks
			f.scales = "int8"
			scales = func(rows, cols int64) int64 {
				blocks := ceil(rows*cols, 64)
				return blocks + 4*ceil(blocks, 256)
			}
		}
	case "bitsandbytes-8bit", "int8":
		bits = 8
		scales = func(rows, cols int64) int64 { return 4 * rows * groupsOf(cols, q.Group) }
	case "fp8":
		bits = 8
		scales = func(rows, cols int64) int64 {
			if q.Block[0] > 0 && q.Block[1] > 0 {
				return 4 * ceil(rows, int64(q.Block[0])) * ceil(cols, int64(q.Block[1]))
			}
			return 4
		}
	case "nvfp4": // an fp8 scale per group and two f32 per matrix
		f.scales, bits = "fp8", 4
		scales = func(rows, cols int64) int64 { return rows*ceil(cols, 16) + 8 }
	case "mxfp4":
		f.scales, bits = "e8m0", 4
		scales = func(rows, cols int64) int64 { return rows * ceil(cols, 32) }
	default:
		f.scales = ""
		return f
	}
	f.matrix = func(rows, cols int64, _ hfconfig.Weight) stored {
		return stored{values: bitsOf(rows*cols, bits), scales: scales(rows, cols)}
	}
	return f
}
