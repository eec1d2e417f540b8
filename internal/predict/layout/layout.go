// Package layout says how formats of weights lie in memory: the sizes of values, scales and what stays unquantised, by
// the name of a format or by a model's configuration.
package layout

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

// The dtypes of what is not quantised, unless one is given.
var (
	Float32, _ = dtype.Named("f32")
	Float16, _ = dtype.Named("f16")
)

// Stored is the size of a weight in bytes: quantised values, their scales and zero points, and values left unquantised.
type Stored struct{ Values, Scales, Plain int64 }

// Sum returns all of it.
func (s Stored) Sum() int64 { return s.Values + s.Scales + s.Plain }

// Format is a storage format of weights.
type Format struct {
	Name   string
	Scales string      // dtype of the scales; "": none
	Plain  dtype.DType // dtype of what is not quantised
	// all: every matrix is quantised, including embedding and head; otherwise only matrices of the layers.
	all    bool
	matrix func(rows, cols int64, w hfconfig.Weight) Stored
	kept   func(hfconfig.Weight) int64 // how many copies stay unquantised; nil: none
	// Rough: the mixture of types follows a rule instead of a file. The range then is Low to High.
	Rough     bool
	Low, High float64
}

// Bytes returns the size of all copies of a weight.
func (f Format) Bytes(w hfconfig.Weight) Stored {
	quantised := f.matrix != nil && w.Cols > 1 && w.Part != hfconfig.Router && (w.Linear || f.all) &&
		w.Part != hfconfig.Positions
	if !quantised {
		return Stored{Plain: f.Plain.Size(1, w.Values())}
	}
	kept := int64(0)
	if f.kept != nil {
		kept = f.kept(w)
	}
	s := f.matrix(w.Rows, w.Cols, w)
	return Stored{s.Values * (w.Times - kept), s.Scales * (w.Times - kept), f.Plain.Size(1, kept*w.Rows*w.Cols)}
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

// Packed returns one of MLC's formats.
func Packed(name string) (Format, bool) {
	p, ok := dtype.PackedAs(name)
	if !ok || p.Bits == 0 {
		return Format{Name: p.Plain.Name, Plain: p.Plain}, ok
	}
	return Format{Name: name, Scales: p.Plain.Name, Plain: p.Plain, all: !p.Layers,
		matrix: func(rows, cols int64, _ hfconfig.Weight) (s Stored) {
			s.Values, s.Scales = p.Size(rows, cols)
			return s
		}}, true
}

// Method returns a quantisation method by name, with the defaults of its authors' tools.
func Method(name string, group int) (*hfconfig.Quantized, error) {
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

// Quantized returns the layout of quantised values and their scales.
func Quantized(q *hfconfig.Quantized, plain dtype.DType, layers int) Format {
	f := Format{Name: q.Method, Scales: "f32", Plain: plain,
		kept: func(w hfconfig.Weight) int64 { return q.Kept(w, layers) }}
	bits := int64(q.Bits)
	var scales func(rows, cols int64) int64
	switch q.Method {
	case "awq", "compressed-tensors", "int4", "gptq": // per group a 16-bit scale and a packed zero point
		f.Name, f.Scales = fmt.Sprintf("%s (int%d)", q.Method, q.Bits), "f16"
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
			f.Scales = "int8"
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
		f.Scales, bits = "fp8", 4
		scales = func(rows, cols int64) int64 { return rows*ceil(cols, 16) + 8 }
	case "mxfp4":
		f.Scales, bits = "e8m0", 4
		scales = func(rows, cols int64) int64 { return rows * ceil(cols, 32) }
	default:
		f.Scales = ""
		return f
	}
	f.matrix = func(rows, cols int64, _ hfconfig.Weight) Stored {
		return Stored{Values: bitsOf(rows*cols, bits), Scales: scales(rows, cols)}
	}
	return f
}
