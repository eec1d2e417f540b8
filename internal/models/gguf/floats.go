package gguf

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
)

// OpenReadable opens a model whose weights can all be read. The caller closes it.
func OpenReadable(path string) (*File, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := f.RequireReadable(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// RequireReadable refuses a file with a tensor of an unreadable type.
func (f *File) RequireReadable() error {
	for _, t := range f.Tensors {
		if err := f.readable(t); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) readable(t Tensor) error {
	if t.Type.Readable() {
		return nil
	}
	return fault.New(fault.UnknownArch, "choose a model in F32, F16, BF16, Q4_0 to Q8_0 or Q2_K to Q6_K",
		"%s: tensor %s is %v, whose values cannot be read", f.Name, t.Name, t.Type)
}

// Dominant returns the type of most values, ignoring F32 unless all are F32: every quantised model has some F32.
func (f *File) Dominant() Type {
	counts := map[Type]int64{}
	for _, t := range f.Tensors {
		if t.Type != F32 {
			counts[t.Type] += t.Elements()
		}
	}
	types := slices.Sorted(maps.Keys(counts))
	if len(types) == 0 {
		return F32
	}
	return slices.MaxFunc(types, func(a, b Type) int { return cmp.Compare(counts[a], counts[b]) })
}

// mixes are llama-quantize's names of mixtures of types, by general.file_type.
var mixes = map[uint64]string{10: "q2_k", 11: "q3_k_s", 12: "q3_k_m", 13: "q3_k_l", 14: "q4_k_s", 15: "q4_k_m",
	16: "q5_k_s", 17: "q5_k_m", 19: "iq2_xxs", 20: "iq2_xs", 21: "q2_k_s", 22: "iq3_xs", 23: "iq3_xxs", 24: "iq1_s",
	25: "iq4_nl", 26: "iq3_s", 27: "iq3_m", 28: "iq2_s", 29: "iq2_m", 30: "iq4_xs", 31: "iq1_m"}

// DType returns what people call the weights: the file's own name of a mixture of types, such as q4_k_m, where the file
// holds several quantised types, and otherwise the dominant type.
func (f *File) DType() string {
	types := map[Type]bool{}
	for _, t := range f.Tensors {
		if t.Type != F32 && t.Type != F16 && t.Type != BF16 {
			types[t.Type] = true
		}
	}
	if kind, err := f.Uint("general.file_type"); err == nil && len(types) > 1 && mixes[kind] != "" {
		return mixes[kind]
	}
	return strings.ToLower(f.Dominant().String())
}

// Rows reads a tensor's values a few rows at a time, in constant memory.
type Rows struct {
	file   *File
	tensor Tensor
	source io.Reader
	blocks []byte    // rows as stored
	values []float32 // rows as decoded
	width  int       // values per row
	stored int       // bytes per row
	left   int64     // rows not yet read
}

// Reset starts reading a tensor of f, n rows at a time. It reuses the memory of an earlier one.
func (r *Rows) Reset(f *File, t Tensor, n int) error {
	if err := f.readable(t); err != nil {
		return err
	}
	rows := t.Elements() / int64(t.Shape[0])
	r.file, r.tensor, r.source, r.left = f, t, f.Data(t), rows
	r.width, r.stored = int(t.Shape[0]), int(t.Size/rows)
	held := int(min(max(int64(n), 1), rows))
	r.blocks = slices.Grow(r.blocks[:0], held*r.stored)[:held*r.stored]
	r.values = slices.Grow(r.values[:0], held*r.width)[:held*r.width]
	return nil
}

// Left returns the number of rows that Next has not returned yet.
func (r *Rows) Left() int64 { return r.left }

// Next returns the values of the next rows, fewer at the end, and then io.EOF. They are valid until the next call.
func (r *Rows) Next() ([]float32, error) {
	blocks, _, err := r.NextBlocks()
	if err != nil {
		return nil, err
	}
	values := r.values[:len(blocks)/r.stored*r.width]
	return values, Dequantise(r.tensor.Type, blocks, values)
}

// NextBlocks is Next for rows as they are stored, and returns the bytes of a row too.
func (r *Rows) NextBlocks() (blocks []byte, row int, err error) {
	if r.left == 0 {
		return nil, r.stored, io.EOF
	}
	n := int(min(int64(len(r.values)/r.width), r.left))
	blocks = r.blocks[:n*r.stored]
	if _, err := io.ReadFull(r.source, blocks); err != nil {
		if err := r.file.unchanged(); err != nil {
			return nil, r.stored, err
		}
		return nil, r.stored, fault.Wrap(fault.BadModel, err, "check the disk, and that nothing changes the file",
			"%s: cannot read tensor %s", r.file.Name, r.tensor.Name)
	}
	if r.left -= int64(n); r.left == 0 {
		if err := r.file.unchanged(); err != nil {
			return nil, r.stored, err
		}
	}
	return blocks, r.stored, nil
}

// Floats reads all values of a tensor.
func (f *File) Floats(t Tensor) ([]float32, error) {
	var rows Rows
	if err := rows.Reset(f, t, int(t.Elements()/int64(t.Shape[0]))); err != nil {
		return nil, err
	}
	return rows.Next()
}
