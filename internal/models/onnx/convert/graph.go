package convert

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"llmparity/internal/models/gguf"
)

// elem is the type of a tensor's values.
type elem int64

// The types that are written.
const (
	float32s elem = 1
	uint8s   elem = 2
	int32s   elem = 6
	int64s   elem = 7
	float16s elem = 10
)

var widths = map[elem]int64{float32s: 4, uint8s: 1, int32s: 4, int64s: 8, float16s: 2}

// microsoft is the domain of the operators that only ONNX Runtime has.
const microsoft = "com.microsoft"

// block is the number of values that share a scale, in Q4_0 and in MatMulNBits.
const block = 32

// graph is a model in the making.
type graph struct {
	gguf.Architecture
	file    *gguf.File
	context int
	elem    elem // of activations, of the KV cache, and of weights that are not kept
	nodes   []message
	inside  []message // initializers in the model's file
	weights []*weight // initializers in files of data
	named   map[string]bool
}

// fresh returns an unused name.
func (g *graph) fresh(op string) string { return op + "_" + strconv.Itoa(len(g.nodes)) }

// add adds an operation with one result, and returns its name.
func (g *graph) add(domain, op string, inputs []string, attrs ...attr) string {
	out := g.fresh(op)
	g.nodes = append(g.nodes, node(domain, op, inputs, []string{out}, attrs))
	return out
}

func (g *graph) plain(op string, inputs ...string) string { return g.add("", op, inputs) }

// ints returns the name of a constant; of one value without dimensions, if it is scalar.
func (g *graph) ints(scalar bool, values ...int64) string {
	name := fmt.Sprintf("ints_%v_%v", scalar, values)
	dims := []int64{int64(len(values))}
	if scalar {
		dims = nil
	}
	raw, _ := binary.Append(nil, binary.LittleEndian, values) // of fixed size
	return g.keep(name, int64s, dims, raw)
}

// number returns the name of a scalar constant of the type of activations.
func (g *graph) number(v float64) string {
	raw := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v)))
	one := g.keep(fmt.Sprintf("number_%g", v), float32s, nil, raw)
	if g.elem == float32s {
		return one
	}
	return g.cast(one, g.elem)
}

// keep adds a constant unless it is there.
func (g *graph) keep(name string, kind elem, dims []int64, raw []byte) string {
	if !g.named[name] {
		g.named[name] = true
		g.inside = append(g.inside, constant(name, kind, dims, raw))
	}
	return name
}

func (g *graph) cast(x string, to elem) string {
	return g.add("", "Cast", []string{x}, attr{"to", int(to)})
}

// store adds a weight to the files of data unless it is there.
func (g *graph) store(w weight) string {
	if !g.named[w.name] {
		g.named[w.name] = true
		g.weights = append(g.weights, &w)
	}
	return w.name
}

// part is a tensor of the file, or some of its rows.
type part struct {
	name        string
	first, rows int
}

func (g *graph) tensor(p part) gguf.Tensor {
	t, _ := g.file.Tensor(p.name) // checked by Architecture
	if p.rows > 0 {
		t = t.Slice(int64(p.first), int64(p.rows))
	}
	return t
}

func (p part) String() string {
	if p.rows == 0 {
		return p.name
	}
	return fmt.Sprintf("%s_%d", p.name, p.first)
}

// vector returns the name of a vector, or of a matrix stored by rows.
func (g *graph) vector(p part) string {
	t := g.tensor(p)
	dims := []int64{int64(t.Shape[0])}
	if len(t.Shape) > 1 {
		dims = []int64{int64(t.Shape[1]), dims[0]}
	}
	return g.store(weight{name: p.String(), kind: g.elem, dims: dims, tensor: t, encode: g.encoded})
}

// linear multiplies by a matrix. One in Q4_0 keeps its bits.
func (g *graph) linear(x string, p part) string {
	t := g.tensor(p)
	in, out := int64(t.Shape[0]), int64(t.Shape[1])
	if t.Type != gguf.Q4_0 {
		m := g.store(weight{name: p.String() + "_columns", kind: g.elem, dims: []int64{in, out}, tensor: t,
			encode: g.encoded, columns: true})
		return g.plain("MatMul", x, m)
	}
	packed := g.store(weight{name: p.String() + "_q4", kind: uint8s, dims: []int64{out, in / block, block / 2},
		tensor: t, blocks: numbers})
	scales := g.store(weight{name: p.String() + "_scales", kind: g.elem, dims: []int64{out * in / block}, tensor: t,
		blocks: g.scales})
	return g.add(microsoft, "MatMulNBits", []string{x, packed, scales}, attr{"K", int(in)}, attr{"N", int(out)},
		attr{"bits", 4}, attr{"block_size", block}, attr{"accuracy_level", 1})
}

// norm divides by the root mean square, over the last dimension.
func (g *graph) norm(x string, p part) string {
	return g.add("", "SimplifiedLayerNormalization", []string{x, g.vector(p)}, attr{"axis", -1},
		attr{"epsilon", g.RMSEpsilon}, attr{"stash_type", 1})
}

// capped limits values softly; 0 is no limit.
func (g *graph) capped(x string, cap float64) string {
	if cap == 0 {
		return x
	}
	return g.plain("Mul", g.plain("Tanh", g.plain("Div", x, g.number(cap))), g.number(cap))
}
