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

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
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

// stretch is a tensor of a package: rows in a shard.
type stretch struct {
	file  string
	at    int64
	row   int64 // bytes of a row
	dtype string
	short bool // float32 stored as bfloat16
}

// located finds the weights of a package by name.
type located map[string]place

type place struct {
	shard  string
	tensor Tensor
}

func (p Existing) located() located {
	all := located{}
	for _, s := range p.Shards {
		for _, t := range s.Tensors {
			all[t.Name] = place{filepath.Join(p.Dir, s.File), t}
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

// matrixOf finds what is stored together of a weight: as it is, as numbers with scales, or in the form of a type.
func (l located) matrixOf(p param, g group) (m matrix, err error) {
	m = matrix{name: g.name, columns: 1, vector: len(p.shape) == 1}
	if !m.vector {
		m.columns = p.shape[1]
	}
	t, _ := gguf.TypeNamed(g.kind)
	_, quantised := l[g.stem+".q_weight"]
	switch _, formed := forms[t]; {
	case !formed && (!quantised || m.vector):
		m.plain, err = l.take(g.name, append([]int64{g.rows}, p.shape[1:]...), Float32, Float16)
		if m.plain.dtype == Float16 && !m.vector {
			m.kind = gguf.F16
		}
		return m, err
	case !formed:
		t = gguf.Q4_0
	}
	m.kind = t
	if values, _ := t.Block(); m.columns%values != 0 {
		return m, fmt.Errorf("weight %s has rows of %d values, but the blocks of %v have %d", g.name, m.columns, t, values)
	}
	scales := []string{uint32Name}
	if t == gguf.Q4_0 {
		scales = []string{Float32, Float16}
	}
	both := packed(g.stem, t, g.rows, m.columns, floats{}, nil)
	if m.numbers, err = l.take(both[0].name, both[0].shape, uint32Name); err == nil {
		m.plain, err = l.take(both[1].name, both[1].shape, scales...)
	}
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

// rows converts count rows that begin at row first to those of a GGUF, and proves that their values are the same.
func (m matrix) rows(plain, numbers io.ReaderAt, first, count int64) ([]byte, error) {
	stored, err := m.plain.read(plain, first, count)
	if err != nil {
		return nil, err
	}
	if _, formed := forms[m.kind]; formed {
		packed, err := m.numbers.read(numbers, first, count)
		if err != nil {
			return nil, err
		}
		return m.scattered(packed, stored, int(count))
	}
	values, err := m.plain.floats(stored)
	if err != nil {
		return nil, err
	}
	if m.kind != gguf.Q4_0 {
		out := stored
		if m.kind == gguf.F32 {
			if out, err = appendFloats(nil, values); err != nil {
				return nil, err
			}
		}
		return out, m.same(out, values)
	}
	packed, err := m.numbers.read(numbers, first, count)
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(values)*blockQ4_0)
	want := make([]float32, 32*len(values))
	for i, scale := range values {
		h, ok := half(scale)
		if !ok || math.Float32bits(gguf.Half(h)) != math.Float32bits(scale) {
			return nil, fmt.Errorf("weight %s has the scale %g, which float16 cannot express", m.name, scale)
		}
		group := packed[i*packedQ4:][:packedQ4]
		UnpackQ4(out[i*blockQ4_0:], group, h)
		for j := range 32 {
			word := binary.LittleEndian.Uint32(group[j/8*4:])
			want[32*i+j] = float32(int(word>>(j%8*4)&15)-7) * scale
		}
	}
	return out, m.same(out, want)
}

// scattered puts rows of blocks together again, and proves that they would be stored as they were.
func (m matrix) scattered(packed, scales []byte, count int) (out []byte, err error) {
	values, size := m.kind.Block()
	f, blocks := forms[m.kind], int(m.columns/values)
	for i := range count {
		row := make([]byte, blocks*int(size))
		spread := func(from []byte, spans ...span) {
			for _, s := range spans {
				for at := 0; at < len(row); at += int(size) {
					from = from[copy(row[at+s.from:at+s.to], from):]
				}
			}
		}
		numbers, scale := packed[i*int(m.numbers.row):][:m.numbers.row], scales[i*int(m.plain.row):][:m.plain.row]
		spread(numbers, f.numbers)
		spread(scale, f.scales...)
		if !bytes.Equal(gather(nil, row, int(size), f.numbers), numbers) ||
			!bytes.Equal(gather(nil, row, int(size), f.scales...), scale) {
			return nil, fmt.Errorf("weight %s: the padding of row %d is not zero", m.name, i)
		}
		out = append(out, row...)
	}
	return out, nil
}

// same proves that blocks have the values of the package.
func (m matrix) same(blocks []byte, want []float32) error {
	got := make([]float32, len(want))
	if err := gguf.Dequantise(m.kind, blocks, got); err != nil {
		return err
	}
	for i, v := range want {
		if got[i] != v && (v == v || got[i] == got[i]) {
			return fmt.Errorf("weight %s: a value is %g in the package and %g in the GGUF", m.name, v, got[i])
		}
	}
	return nil
}

// piece is rows of a weight that are rows of a GGUF's tensor, from a row of it on.
type piece struct {
	matrix
	part
	from int64 // the first row, in the weight
}

// write writes the rows in the GGUF's order.
func (p piece) write(dir string, write func([]byte) error) error {
	plain, err := os.Open(p.plain.file)
	if err != nil {
		return err
	}
	defer plain.Close()
	numbers := plain
	if p.numbers.file != "" {
		if numbers, err = os.Open(p.numbers.file); err != nil {
			return err
		}
		defer numbers.Close()
	}
	group := int64(max(p.headDim, 1))
	step := max(pieceBytes/(4*p.columns*group), 1) * group
	for done := int64(0); done < p.part.rows; done += step {
		count := min(step, p.part.rows-done)
		rows, err := p.matrix.rows(plain, numbers, p.from+done, count)
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
