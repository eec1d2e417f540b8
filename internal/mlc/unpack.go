package mlc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
)

// matrix is a weight of a package, or a vector, as its rows lie in the shards.
type matrix struct {
	name    string // with .weight or .bias
	columns int64
	kind    gguf.Type // what its rows become
	plain   stretch   // the values; of blocks the scales
	numbers stretch   // of blocks
	vector  bool
}

// blocks reports whether it has blocks of numbers and scales.
func (m matrix) blocks() bool { return m.numbers.file != "" }

// stretch is a tensor of a package: rows in a shard.
type stretch struct {
	file  string
	at    int64
	row   int64 // bytes of a row
	dtype string
	short bool // float32 stored as bfloat16
}

// located finds the weights of a package by name.
type located map[string]struct {
	shard  string
	tensor Tensor
}

func (p Existing) located() located {
	all := located{}
	for _, s := range p.Shards {
		for _, t := range s.Tensors {
			all[t.Name] = struct {
				shard  string
				tensor Tensor
			}{filepath.Join(p.Dir, s.File), t}
		}
	}
	return all
}

// take removes a tensor of a shape from the list.
func (l located) take(name string, shape []int64, dtypes ...string) (stretch, error) {
	found, ok := l[name]
	delete(l, name)
	t := found.tensor
	switch {
	case !ok:
		return stretch{}, fmt.Errorf("weight %s is missing", name)
	case !slices.Equal(t.Shape, shape) || !slices.Contains(dtypes, t.DType):
		return stretch{}, fmt.Errorf("weight %s is %s %v, want %v %v", name, t.DType, Dims(t.Shape), dtypes,
			Dims(shape))
	}
	rows := shape[0]
	return stretch{file: found.shard, at: t.Offset, row: t.Bytes / rows, dtype: t.DType,
		short: t.DType == Float32 && t.Bytes*2 == 4*product(shape)}, nil
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// joined finds the matrices that a weight of the given types is stored as, with the parts of each. See param.joined.
func (l located) joined(p param, types []string, rows func(part) int64) (list []matrix, parts [][]part, err error) {
	if len(types) == 0 {
		types = []string{""}
	}
	kind := func(i int) string { return types[min(i, len(types)-1)] }
	for i, number := 0, 0; i < len(p.parts); number++ {
		first, own := i, param{name: p.name, shape: slices.Clone(p.shape)}
		if len(own.shape) == 2 {
			own.shape[0] = 0
		}
		for ; i < len(p.parts) && kind(i) == kind(first); i++ {
			if len(own.shape) == 2 {
				own.shape[0] += rows(p.parts[i])
			}
		}
		if first > 0 || i < len(p.parts) {
			own.name = fmt.Sprintf("%s.%d.weight", p.stem(), number)
		}
		m, err := l.matrixOf(own, kind(first))
		if err != nil {
			return nil, nil, err
		}
		list, parts = append(list, m), append(parts, p.parts[first:i])
	}
	return list, parts, nil
}

// formed finds a matrix whose blocks are stored as a form says.
func (l located) formed(m matrix, p param, t gguf.Type) (_ matrix, err error) {
	values, _ := gguf.Block(t.String())
	f, rows, blocks := forms[t], p.shape[0], m.columns/values
	m.kind = t
	if m.columns%values != 0 {
		return m, fmt.Errorf("weight %s has rows of %d values, but the blocks of %v have %d", p.name, m.columns, t, values)
	}
	m.numbers, err = l.take(p.stem()+".q_weight", []int64{rows, words(blocks, f.numbers)}, uint32Name)
	if err == nil {
		m.plain, err = l.take(p.stem()+".q_scale", []int64{rows, words(blocks, f.scales...)}, uint32Name)
	}
	return m, err
}

// matrixOf finds a weight as it is, as numbers with scales, or in the form of a type.
func (l located) matrixOf(p param, kind string) (matrix, error) {
	m := matrix{name: p.name, columns: 1, vector: len(p.shape) == 1}
	if !m.vector {
		m.columns = p.shape[1]
	}
	for t := range forms {
		if strings.EqualFold(t.String(), kind) {
			return l.formed(m, p, t)
		}
	}
	var err error
	if _, quantised := l[p.stem()+".q_weight"]; !quantised || m.vector {
		m.plain, err = l.take(p.name, p.shape, Float32, Float16)
		if m.plain.dtype == Float16 && !m.vector {
			m.kind = gguf.F16
		}
		return m, err
	}
	m.kind = gguf.Q4_0
	if m.columns%32 != 0 {
		return m, fmt.Errorf("weight %s has rows of %d values, but the blocks of Q4_0 have 32", p.name, m.columns)
	}
	rows := p.shape[0]
	if m.numbers, err = l.take(p.stem()+".q_weight", []int64{rows, m.columns / 8}, "uint32"); err != nil {
		return m, err
	}
	m.plain, err = l.take(p.stem()+".q_scale", []int64{rows, m.columns / 32}, Float32, Float16)
	return m, err
}

// read reads rows of a stretch.
func (s stretch) read(from io.ReaderAt, first, count int64) ([]byte, error) {
	b := make([]byte, count*s.row)
	_, err := from.ReadAt(b, s.at+first*s.row)
	return b, err
}

// floats returns stored values.
func (s stretch) floats(b []byte) ([]float32, error) {
	kind, width := gguf.F32, 4
	switch {
	case s.dtype == Float16:
		kind, width = gguf.F16, 2
	case s.short:
		kind, width = gguf.BF16, 2
	}
	values := make([]float32, len(b)/width)
	return values, gguf.Dequantise(kind, b, values)
}

// unpacker writes rows of a package as those of a GGUF, and proves that their values are the same.
type unpacker struct {
	matrix
	dir string // for errors
}

// rows converts count rows that begin at row first.
func (u unpacker) rows(plain, numbers io.ReaderAt, first, count int64) ([]byte, error) {
	stored, err := u.plain.read(plain, first, count)
	if err != nil {
		return nil, err
	}
	if _, formed := forms[u.kind]; formed {
		packed, err := u.numbers.read(numbers, first, count)
		if err != nil {
			return nil, err
		}
		return u.scattered(packed, stored, int(count))
	}
	values, err := u.plain.floats(stored)
	if err != nil {
		return nil, err
	}
	if u.kind != gguf.Q4_0 {
		out := stored
		if u.kind == gguf.F32 {
			if out, err = appendFloats(nil, values); err != nil {
				return nil, err
			}
		}
		return out, u.same(out, values)
	}
	packed, err := u.numbers.read(numbers, first, count)
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(values)*blockQ4_0)
	want := make([]float32, 32*len(values))
	for i, scale := range values {
		h, ok := half(scale)
		if !ok || math.Float32bits(widen(h)) != math.Float32bits(scale) {
			return nil, fmt.Errorf("weight %s has the scale %g, which is no float16", u.name, scale)
		}
		group := packed[i*packedQ4:][:packedQ4]
		UnpackQ4(out[i*blockQ4_0:], group, h)
		for j := range 32 {
			word := binary.LittleEndian.Uint32(group[j/8*4:])
			want[32*i+j] = float32(int(word>>(j%8*4)&15)-7) * scale
		}
	}
	return out, u.same(out, want)
}

// scattered puts rows of blocks together again, and proves that they would be stored as they were.
func (u unpacker) scattered(packed, scales []byte, count int) (out []byte, err error) {
	values, size := gguf.Block(u.kind.String())
	f, blocks := forms[u.kind], int(u.columns/values)
	for i := range count {
		row := make([]byte, blocks*int(size))
		spread := func(from []byte, spans ...span) {
			for _, s := range spans {
				for at := 0; at < len(row); at += int(size) {
					from = from[copy(row[at+s.from:at+s.to], from):]
				}
			}
		}
		numbers, scale := packed[i*int(u.numbers.row):][:u.numbers.row], scales[i*int(u.plain.row):][:u.plain.row]
		spread(numbers, f.numbers)
		spread(scale, f.scales...)
		if !bytes.Equal(gather(nil, row, int(size), f.numbers), numbers) ||
			!bytes.Equal(gather(nil, row, int(size), f.scales...), scale) {
			return nil, fmt.Errorf("weight %s: row %d does not fill its blocks", u.name, i)
		}
		out = append(out, row...)
	}
	return out, nil
}

// same proves that blocks have the values of the package.
func (u unpacker) same(blocks []byte, want []float32) error {
	got := make([]float32, len(want))
	if err := gguf.Dequantise(u.kind, blocks, got); err != nil {
		return err
	}
	for i, v := range want {
		if got[i] != v && (v == v || got[i] == got[i]) {
			return fmt.Errorf("weight %s: a value is %g in the package and %g in the GGUF", u.name, v, got[i])
		}
	}
	return nil
}

// widen returns the value of a 16-bit float.
func widen(h uint16) float32 {
	v := make([]float32, 1)
	if gguf.Dequantise(gguf.F16, binary.LittleEndian.AppendUint16(nil, h), v) != nil {
		return float32(math.NaN())
	}
	return v[0]
}

// piece is rows of a weight that are rows of a GGUF's tensor, from a row of it on.
type piece struct {
	matrix
	first, count int64 // in the weight
	to           int64 // in the tensor
	headDim      int   // see part
}

// write writes the rows in the GGUF's order.
func (p piece) write(dir string, write func([]byte) error) error {
	plain, err := os.Open(p.plain.file)
	if err != nil {
		return err
	}
	defer plain.Close()
	numbers := plain
	if p.blocks() {
		if numbers, err = os.Open(p.numbers.file); err != nil {
			return err
		}
		defer numbers.Close()
	}
	group := int64(max(p.headDim, 1))
	u, step := unpacker{p.matrix, dir}, max(pieceBytes/(4*p.columns*group), 1)*group
	for done := int64(0); done < p.count; done += step {
		count := min(step, p.count-done)
		rows, err := u.rows(plain, numbers, p.first+done, count)
		if err != nil {
			return unfit(dir, err)
		}
		if err := write(paired(rows, len(rows)/int(count), p.headDim)); err != nil {
			return err
		}
	}
	return nil
}

// paired puts rows of heads that are half a head apart next to each other, for an interleaved rotation.
func paired(rows []byte, width, headDim int) []byte {
	if headDim == 0 {
		return rows
	}
	out := make([]byte, 0, len(rows))
	for head := range slices.Chunk(rows, width*headDim) {
		for j := range headDim {
			from := (j/2 + j%2*headDim/2) * width
			out = append(out, head[from:from+width]...)
		}
	}
	return out
}

// unfit is the error for a package that cannot become a GGUF.
func unfit(dir string, err error) error {
	return fault.Wrap(fault.UnknownArch, err, "choose another package, or a GGUF of the model",
		"package %s cannot become a GGUF", filepath.Base(filepath.Clean(dir)))
}
