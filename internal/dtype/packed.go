package dtype

import "regexp"

// Packed is one of MLC's formats of weights: groups of values in words of 32 bits along a row, with a scale each.
type Packed struct {
	Bits  int64 // of a value; 0: the weights are as Plain
	Plain DType // of the scales, and of what is not quantised
	Group int64 // values that share a scale
	// Layers: only the matrices of the layers are quantised, not embedding and head.
	Layers bool
}

// packedName matches MLC's names: q4f16_1 has 4 bits and float16 scales. _2 leaves embedding and head as they are.
var packedName = regexp.MustCompile(`^q([0348])(f16|f32|bf16)(?:_([0-2]))?$`)

// PackedAs returns the format of MLC's with a name.
func PackedAs(name string) (Packed, bool) {
	m := packedName.FindStringSubmatch(name)
	if m == nil || (m[1] == "0") != (m[3] == "") {
		return Packed{}, false
	}
	p := Packed{Bits: int64(m[1][0] - '0'), Group: 32, Layers: m[3] == "2"}
	p.Plain, _ = Named(m[2])
	if p.Bits == 3 {
		p.Group = 40
	}
	return p, true
}

// Size returns the bytes of the values of a matrix, and of their scales.
func (p Packed) Size(rows, columns int64) (values, scales int64) {
	perWord, groups := 32/p.Bits, (columns+p.Group-1)/p.Group
	return rows * groups * (p.Group / perWord) * 4, p.Plain.Size(1, rows*groups)
}

// GGUF names the nearest type or mixture of a GGUF; "" if there is none.
func (p Packed) GGUF() string {
	return map[int64]string{0: p.Plain.Name, 3: "q3_k_m", 4: "q4_0", 8: "q8_0"}[p.Bits]
}

// ScalesOf returns the dtype of the scales of weights by the name of their format; "": none, or unknown.
func ScalesOf(weights string) string {
	if p, ok := PackedAs(weights); ok {
		if p.Bits == 0 {
			return ""
		}
		return p.Plain.Name
	}
	if d, ok := Named(weights); ok {
		return d.Scales
	}
	switch {
	case mixture.MatchString(weights), weights == "awq", weights == "gptq":
		return "f16"
	}
	return ""
}

// mixture matches llama.cpp's names of mixtures of block types, such as q4_k_m.
var mixture = regexp.MustCompile(`^(?:i?q[1-8]_|tq[12]_)`)
