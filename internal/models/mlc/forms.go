package mlc

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/internal/models/gguf"
)

// AsIs stores weights as their file does, where the type has a form.
const AsIs = "as-is"

// Requantized stores all matrices as Q4_0, those of other types rounded as llama.cpp rounds.
const Requantized = "q4_0"

// span is a range of bytes of a block.
type span struct{ from, to int }

// form is how a package stores the rows of a matrix in the bits of a GGUF's type: all blocks' numbers as q_weight, and
// as q_scale one part of all blocks after the other, filled up to whole words. The compiler of model libraries has the
// same table, in weights.py.
type form struct {
	numbers span
	scales  []span
}

var forms = map[gguf.Type]form{
	gguf.Q8_0: {span{2, 34}, []span{{0, 2}}},
	gguf.Q4_1: {span{4, 20}, []span{{0, 4}}},
	gguf.Q5_0: {span{6, 22}, []span{{2, 6}, {0, 2}}},
	gguf.Q5_1: {span{8, 24}, []span{{4, 8}, {0, 4}}},
	gguf.Q4_K: {span{16, 144}, []span{{0, 16}}},
	gguf.Q5_K: {span{16, 176}, []span{{0, 16}}},
	gguf.Q6_K: {span{0, 192}, []span{{192, 208}, {208, 210}}},
}

// Keeps reports whether a type can be stored as it is. Q4_0 becomes MLC's own form of it.
func Keeps(t gguf.Type) bool {
	_, ok := forms[t]
	return ok || t == gguf.Q4_0
}

// words returns the 32-bit words of spans of a row's blocks.
func words(blocks int64, spans ...span) (n int64) {
	for _, s := range spans {
		n += blocks * int64(s.to-s.from)
	}
	return (n + 3) / 4
}

// gather appends spans of a row's blocks, filled up to whole words.
func gather(to, row []byte, size int, spans ...span) []byte {
	for _, s := range spans {
		for at := 0; at < len(row); at += size {
			to = append(to, row[at+s.from:at+s.to]...)
		}
	}
	for len(to)%4 != 0 {
		to = append(to, 0)
	}
	return to
}

// packed returns the tensors of a matrix in the bits of its type.
func packed(stem string, t gguf.Type, rows, columns int64, d floats, parts []part) []stored {
	values, size := t.Block()
	blocks := columns / values
	tensor := func(suffix, dtype string, columns int64, row func(to, row []byte) ([]byte, error)) stored {
		return stored{name: stem + suffix, shape: []int64{rows, columns}, dtype: dtype, parts: parts, row: row}
	}
	if t == gguf.Q4_0 {
		both := []stored{tensor(".q_weight", uint32Name, blocks*packedQ4/4, q4Numbers),
			tensor(".q_scale", d.Torch, blocks, d.q4Scales)}
		both[0].quantised, both[1].quantised = true, true
		return both
	}
	part := func(suffix string, spans ...span) stored {
		return tensor(suffix, uint32Name, words(blocks, spans...), func(to, row []byte) ([]byte, error) {
			return gather(to, row, int(size), spans...), nil
		})
	}
	return []stored{part(".q_weight", forms[t].numbers), part(".q_scale", forms[t].scales...)}
}

const uint32Name = "uint32"

func q4Numbers(to, row []byte) ([]byte, error) {
	var back [blockQ4_0]byte
	for ; len(row) > 0; row = row[blockQ4_0:] {
		at := len(to)
		to = slices.Grow(to, packedQ4)[:at+packedQ4]
		scale := PackQ4(to[at:], row)
		if UnpackQ4(back[:], to[at:], scale); !bytes.Equal(back[:], row[:blockQ4_0]) { // proves each weight
			return to, fmt.Errorf("block %x comes back as %x", row[:blockQ4_0], back)
		}
	}
	return to, nil
}

// q4Scales appends the scales of a row of Q4_0.
func (d floats) q4Scales(to, row []byte) ([]byte, error) {
	for ; len(row) > 0; row = row[blockQ4_0:] {
		if h := scaleQ4(row); d.Torch == Float16 {
			to = binary.LittleEndian.AppendUint16(to, h)
		} else {
			to = binary.LittleEndian.AppendUint32(to, math.Float32bits(gguf.Half(h)))
		}
	}
	return to, nil
}

// typesOf returns the type of each matrix of the package, by its name without what follows the last dot: one, or one
// for each of the matrices that it joins; and MLC's name of a package with these types.
func typesOf(f *gguf.File, list []param, options Options, d floats) (types map[string][]string, quantization string) {
	types, names := map[string][]string{}, map[string]bool{}
	for _, p := range list {
		if len(p.shape) != 2 {
			continue
		}
		var of []string
		for _, t := range p.types(f) {
			name := options.stored(t, p.shape[1])
			of, names[name] = append(of, name), true
		}
		if slices.ContainsFunc(of, func(name string) bool { return name != plain }) {
			if alike := slices.Compact(slices.Clone(of)); len(alike) == 1 {
				of = alike
			}
			types[p.stem()] = of
		}
	}
	if len(types) == 0 {
		return nil, ""
	}
	if names["q4_0"] && len(names) == 1 {
		return types, "q4" + d.Name + "_1"
	}
	if names[plain] {
		delete(names, plain)
		names[d.Name] = true
	}
	return types, strings.Join(slices.Sorted(maps.Keys(names)), "+")
}

// The types of matrices whose values are numbers: of the model's dtype, or of another.
const plain = "plain"

var plains = map[string]string{"f32": Float32, "f16": Float16}

// stored returns the name of the type that a matrix of type t and so many columns is stored in.
func (o Options) stored(t gguf.Type, columns int64) string {
	if o.Weights == Requantized && columns%groupQ4 == 0 {
		return Requantized
	}
	if o.Weights == AsIs && Keeps(t) {
		return strings.ToLower(t.String())
	}
	for name, dtype := range plains {
		if o.Weights == dtype && dtype != cmp.Or(o.DType, Float32) {
			return name
		}
	}
	return plain
}

// decodedTo returns the dtype of a matrix's values if its type is plain.
func (o Options) decodedTo(stored string) (dtype string, ok bool) {
	if stored == plain {
		return cmp.Or(o.DType, Float32), true
	}
	dtype, ok = plains[stored]
	return dtype, ok
}

// types returns the types of what a matrix joins.
func (p param) types(f *gguf.File) (list []gguf.Type) {
	for _, part := range p.parts {
		t, _ := f.Tensor(part.tensor)
		list = append(list, t.Type)
	}
	return list
}

// stored is a tensor of a package.
type stored struct {
	name  string
	shape []int64
	dtype string
	parts []part
	// row appends a row, given in the type of its file; nil: its values, in the dtype.
	row func(to, row []byte) ([]byte, error)
	// quantised: row takes blocks of Q4_0.
	quantised bool
}

// tensors returns the tensors that a package stores a model's weights in.
func (m model) tensors() (list []stored) {
	for _, p := range params(m.architecture) {
		for _, g := range p.groups(m.shape.WeightTypes[p.stem()]) {
			t, _ := gguf.TypeNamed(g.kind)
			if Keeps(t) {
				list = append(list, packed(g.stem, t, g.rows, p.shape[1], m.dtype, g.parts)...)
				continue
			}
			shape := append([]int64{g.rows}, p.shape[1:]...)
			list = append(list, stored{name: g.name, shape: shape, dtype: cmp.Or(plains[g.kind], m.dtype.Torch),
				parts: g.parts})
		}
	}
	return list
}

// group is what is stored together of a weight.
type group struct {
	name, stem string // stem: without what follows the last dot
	kind       string // the type; "": that of the other weights
	rows       int64
	parts      []part
}

// groups returns how a weight is stored whose matrices have these types. If they differ, neighbours that are alike are
// stored together, and the names end with the number of each.
func (p param) groups(types []string) (list []group) {
	kind := func(i int) string {
		if len(p.shape) == 1 || len(types) == 0 {
			return ""
		}
		return types[min(i, len(types)-1)]
	}
	for i, part := range p.parts {
		if i == 0 || kind(i) != kind(i-1) {
			stem := fmt.Sprintf("%s.%d", p.stem(), len(list))
			list = append(list, group{name: stem + ".weight", stem: stem, kind: kind(i)})
		}
		g := &list[len(list)-1]
		g.rows, g.parts = g.rows+part.rows, append(g.parts, part)
	}
	if len(list) == 1 {
		list[0].name, list[0].stem = p.name, p.stem()
	}
	return list
}
