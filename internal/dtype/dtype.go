// Package dtype is the table of dtypes: their names in model files and engines, and their sizes with the scales of a
// block. It imports no package of ours, so that engines, predictions and comparisons can share it.
package dtype

import (
	"slices"
	"strings"
)

// DType is the format in which numbers are stored. The zero DType is unknown.
type DType struct {
	// Name is the canonical one: of plans, records and llama.cpp.
	Name string
	// Values are stored together in a block of so many Bytes, scales included.
	Values, Bytes int64
	// GGUF is the name in GGUF files, and ID the number there; "": they have no such tensors.
	GGUF string
	ID   uint32
	// Torch is the name in torch, vLLM and MLC. Other names are in Also.
	Torch string
	Also  []string
	// Scales is the dtype of a quantised block's scales; "": not separate numbers.
	Scales string
	// Computes: plans may ask for it for weights and activations. Caches: for the KV cache.
	Computes, Caches bool
}

// all are the dtypes. Those of the KV cache are in the order of messages and schemas.
var all = []DType{
	{Name: "f32", Values: 1, Bytes: 4, GGUF: "F32", ID: 0, Torch: "float32", Also: []string{"float", "fp32"},
		Computes: true, Caches: true},
	{Name: "f16", Values: 1, Bytes: 2, GGUF: "F16", ID: 1, Torch: "float16", Also: []string{"half", "fp16"},
		Computes: true, Caches: true},
	{Name: "bf16", Values: 1, Bytes: 2, GGUF: "BF16", ID: 30, Torch: "bfloat16", Computes: true, Caches: true},
	{Name: "f64", Values: 1, Bytes: 8, GGUF: "F64", ID: 28, Torch: "float64", Also: []string{"double"}},

	{Name: "q8_0", Values: 32, Bytes: 34, GGUF: "Q8_0", ID: 8, Scales: "f16", Caches: true},
	{Name: "q5_1", Values: 32, Bytes: 24, GGUF: "Q5_1", ID: 7, Scales: "f16", Caches: true},
	{Name: "q5_0", Values: 32, Bytes: 22, GGUF: "Q5_0", ID: 6, Scales: "f16", Caches: true},
	{Name: "q4_1", Values: 32, Bytes: 20, GGUF: "Q4_1", ID: 3, Scales: "f16", Caches: true},
	{Name: "q4_0", Values: 32, Bytes: 18, GGUF: "Q4_0", ID: 2, Scales: "f16", Caches: true},
	{Name: "iq4_nl", Values: 32, Bytes: 18, GGUF: "IQ4_NL", ID: 20, Scales: "f16", Caches: true},
	{Name: "fp8", Values: 1, Bytes: 1, Torch: "float8_e4m3fn", Also: []string{"fp8_e4m3", "e4m3", "f8_e4m3",
		"fp8_e4m3fn"}, Caches: true},
	{Name: "fp8_e5m2", Values: 1, Bytes: 1, Torch: "float8_e5m2", Also: []string{"e5m2", "f8_e5m2"}, Caches: true},
	{Name: "int8", Values: 1, Bytes: 1, GGUF: "I8", ID: 24, Also: []string{"u8", "uint8"}},

	{Name: "q8_1", Values: 32, Bytes: 40, GGUF: "Q8_1", ID: 9, Scales: "f16"},
	{Name: "q2_k", Values: 256, Bytes: 84, GGUF: "Q2_K", ID: 10, Scales: "f16"},
	{Name: "q3_k", Values: 256, Bytes: 110, GGUF: "Q3_K", ID: 11, Scales: "f16"},
	{Name: "q4_k", Values: 256, Bytes: 144, GGUF: "Q4_K", ID: 12, Scales: "f16"},
	{Name: "q5_k", Values: 256, Bytes: 176, GGUF: "Q5_K", ID: 13, Scales: "f16"},
	{Name: "q6_k", Values: 256, Bytes: 210, GGUF: "Q6_K", ID: 14, Scales: "f16"},
	{Name: "q8_k", Values: 256, Bytes: 292, GGUF: "Q8_K", ID: 15, Scales: "f16"},
	{Name: "iq2_xxs", Values: 256, Bytes: 66, GGUF: "IQ2_XXS", ID: 16, Scales: "f16"},
	{Name: "iq2_xs", Values: 256, Bytes: 74, GGUF: "IQ2_XS", ID: 17, Scales: "f16"},
	{Name: "iq3_xxs", Values: 256, Bytes: 98, GGUF: "IQ3_XXS", ID: 18, Scales: "f16"},
	{Name: "iq1_s", Values: 256, Bytes: 50, GGUF: "IQ1_S", ID: 19, Scales: "f16"},
	{Name: "iq3_s", Values: 256, Bytes: 110, GGUF: "IQ3_S", ID: 21, Scales: "f16"},
	{Name: "iq2_s", Values: 256, Bytes: 82, GGUF: "IQ2_S", ID: 22, Scales: "f16"},
	{Name: "iq4_xs", Values: 256, Bytes: 136, GGUF: "IQ4_XS", ID: 23, Scales: "f16"},
	{Name: "iq1_m", Values: 256, Bytes: 56, GGUF: "IQ1_M", ID: 29, Scales: "f16"},
	{Name: "tq1_0", Values: 256, Bytes: 54, GGUF: "TQ1_0", ID: 34, Scales: "f16"},
	{Name: "tq2_0", Values: 256, Bytes: 66, GGUF: "TQ2_0", ID: 35, Scales: "f16"},
	{Name: "mxfp4", Values: 32, Bytes: 17, GGUF: "MXFP4", ID: 39, Scales: "e8m0"},
	{Name: "nvfp4", Values: 64, Bytes: 36, GGUF: "NVFP4", ID: 40, Scales: "e4m3"},
	{Name: "q1_0", Values: 128, Bytes: 18, GGUF: "Q1_0", ID: 41, Scales: "f16"},

	{Name: "int4", Values: 2, Bytes: 1, Also: []string{"i4", "uint4"}},
	{Name: "i16", Values: 1, Bytes: 2, GGUF: "I16", ID: 25, Torch: "int16", Also: []string{"u16", "uint16"}},
	{Name: "i32", Values: 1, Bytes: 4, GGUF: "I32", ID: 26, Torch: "int32", Also: []string{"u32", "uint32"}},
	{Name: "i64", Values: 1, Bytes: 8, GGUF: "I64", ID: 27, Torch: "int64", Also: []string{"u64"}},
}

// byName has the dtypes by all their names in lower case, and byID those of GGUF files by number.
var byName, byID = indexed()

func indexed() (map[string]DType, map[uint32]DType) {
	names, ids := map[string]DType{}, map[uint32]DType{}
	for _, d := range all {
		for _, name := range append([]string{d.Name, d.GGUF, d.Torch}, d.Also...) {
			if name != "" {
				names[strings.ToLower(name)] = d
			}
		}
		if d.GGUF != "" {
			ids[d.ID] = d
		}
	}
	return names, ids
}

// Named returns the dtype that has a name somewhere, in any case, also as in torch.float16.
func Named(name string) (DType, bool) {
	d, ok := byName[strings.TrimPrefix(strings.ToLower(name), "torch.")]
	return d, ok
}

// Number returns the dtype of a name if values have no scales.
func Number(name string) (DType, bool) {
	d, ok := Named(name)
	if !ok || d.Quantised() {
		return DType{}, false
	}
	return d, true
}

// OfGGUF returns the dtype of a number in GGUF files.
func OfGGUF(id uint32) (DType, bool) {
	d, ok := byID[id]
	return d, ok
}

// Canonical is our name of a dtype. An unknown name is only written in lower case.
func Canonical(name string) string {
	if d, ok := Named(name); ok {
		return d.Name
	}
	return strings.ToLower(name)
}

// Quantised reports whether values share scales, in a block.
func (d DType) Quantised() bool { return d.Scales != "" }

// Float reports whether it is a float of 16 bits or more: values keep their meaning without scales.
func (d DType) Float() bool {
	return d.Values == 1 && d.Bytes >= 2 && (strings.HasPrefix(d.Name, "f") || d.Name == "bf16")
}

// Bits returns the bits of a value; in a block, with its share of the scales.
func (d DType) Bits() float64 { return 8 * d.Width() }

// Width returns the bytes of a value, with its share of the scales; 0 if the dtype is unknown.
func (d DType) Width() float64 {
	if d.Values == 0 {
		return 0
	}
	return float64(d.Bytes) / float64(d.Values)
}

// Size returns the bytes of rows of values. Blocks don't reach into the next row.
func (d DType) Size(rows, columns int64) int64 {
	if d.Values == 0 {
		return 0
	}
	return rows * ((columns + d.Values - 1) / d.Values) * d.Bytes
}

// Computes lists the dtypes that plans may ask for, for weights and activations.
func Computes() []string {
	return names(func(d DType) []string {
		if d.Computes {
			return []string{d.Name}
		}
		return nil
	})
}

// Caches lists the dtypes that plans may ask for, for the KV cache: also vLLM's other name of fp8.
func Caches() []string {
	return names(func(d DType) []string {
		switch {
		case !d.Caches:
			return nil
		case d.Name == "fp8":
			return []string{d.Name, "fp8_e4m3"}
		}
		return []string{d.Name}
	})
}

func names(of func(DType) []string) (out []string) {
	for _, d := range all {
		out = slices.Concat(out, of(d))
	}
	return out
}
