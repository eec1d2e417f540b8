package mlc

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmparity/internal/gguf"
	"llmparity/internal/modellib"
)

// AsIs stores weights as their file does, where the type has a form.
const AsIs = "as-is"

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

// kept reports whether a type can be stored as it is. Q4_0 becomes MLC's own form of it.
func kept(t gguf.Type) bool {
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
func packed(name string, t gguf.Type, rows, columns int64, d dtype, parts []part) []stored {
	values, size := gguf.Block(t.String())
	blocks := columns / values
	tensor := func(suffix, dtype string, columns int64, row func(to, row []byte) ([]byte, error)) stored {
		return stored{name: name + suffix, shape: []int64{rows, columns}, dtype: dtype, parts: parts, row: row}
	}
	if t == gguf.Q4_0 {
		return []stored{tensor("q_weight", uint32Name, blocks*packedQ4/4, q4Numbers),
			tensor("q_scale", d.name, blocks, d.q4Scales)}
	}
	f := forms[t]
	return []stored{
		tensor("q_weight", uint32Name, words(blocks, f.numbers), func(to, row []byte) ([]byte, error) {
			return gather(to, row, int(size), f.numbers), nil
		}),
		tensor("q_scale", uint32Name, words(blocks, f.scales...), func(to, row []byte) ([]byte, error) {
			return gather(to, row, int(size), f.scales...), nil
		})}
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
func (d dtype) q4Scales(to, row []byte) ([]byte, error) {
	halves := make([]byte, 0, len(row)/blockQ4_0*2)
	for ; len(row) > 0; row = row[blockQ4_0:] {
		halves = binary.LittleEndian.AppendUint16(halves, scaleQ4(row))
	}
	if d.name == Float16 {
		return append(to, halves...), nil
	}
	scales := make([]float32, len(halves)/2)
	if err := gguf.Dequantise(gguf.F16, halves, scales); err != nil {
		return to, err
	}
	return d.append(to, scales)
}

// typesOf returns the type of each matrix of the package, by its name without what follows the last dot: one, or one
// for each of the matrices that it joins; and MLC's name of a package with these types.
func typesOf(f *gguf.File, list []param, options Options, d dtype) (types map[string][]string, quantization string) {
	types, names := map[string][]string{}, map[string]bool{}
	for _, p := range list {
		if len(p.shape) != 2 {
			continue
		}
		var of []string
		for _, t := range p.types(f) {
			name := options.stored(t)
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
		return types, "q4" + short(d.name) + "_1"
	}
	if names[plain] {
		delete(names, plain)
		names[short(d.name)] = true
	}
	return types, strings.Join(slices.Sorted(maps.Keys(names)), "+")
}

// The types of matrices whose values are numbers: of the model's dtype, or of another.
const plain = "plain"

var plains = map[string]string{"f32": Float32, "f16": Float16}

// stored returns the name of the type that a matrix of type t is stored in.
func (o Options) stored(t gguf.Type) string {
	if o.Weights == AsIs && kept(t) {
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

// short returns the usual name of a dtype.
func short(dtype string) string {
	if dtype == Float16 {
		return "f16"
	}
	return "f32"
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
}

// tensors returns the tensors that a package stores a model's weights in.
func tensors(f *gguf.File, a gguf.Architecture, s modellib.Shape, d dtype) ([]stored, error) {
	var list []stored
	for _, p := range params(a) {
		types := s.WeightTypes[p.stem()]
		if len(p.shape) != 2 || len(types) == 0 {
			list = append(list, stored{name: p.name, shape: p.shape, dtype: d.name, parts: p.parts})
			continue
		}
		more, err := p.joined(f, types, d)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// joined returns the tensors of a matrix of the given types. If they differ, neighbours that are alike are stored
// together, and the names begin with the number of each.
func (p param) joined(f *gguf.File, types []string, d dtype) (list []stored, err error) {
	columns := p.shape[1]
	for i, number := 0, 0; i < len(p.parts); number++ {
		first, rows := i, int64(0)
		t, _ := f.Tensor(p.parts[i].tensor)
		for ; i < len(p.parts) && types[min(i, len(types)-1)] == types[min(first, len(types)-1)]; i++ {
			next, ok := f.Tensor(p.parts[i].tensor)
			if !ok {
				return nil, fmt.Errorf("tensor %s is missing", p.parts[i].tensor)
			}
			rows += cmp.Or(p.parts[i].count, next.Elements()/columns)
		}
		name := p.stem() + "."
		if first > 0 || i < len(p.parts) {
			name += fmt.Sprintf("%d.", number)
		}
		kind := types[min(first, len(types)-1)]
		if dtype, ok := plains[kind]; ok || kind == plain {
			list = append(list, stored{name: name + "weight", shape: []int64{rows, columns},
				dtype: cmp.Or(dtype, d.name), parts: p.parts[first:i]})
			continue
		}
		list = append(list, packed(name, t.Type, rows, columns, d, p.parts[first:i])...)
	}
	return list, nil
}
