package gguf

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"

	"llmparity/internal/fault"
)

// RequireF32 refuses a file with a tensor of another type, by name.
func (f *File) RequireF32() error {
	for _, t := range f.Tensors {
		if t.Type != F32 {
			return fault.New(fault.UnknownArch, "convert the model to F32", "model %s: tensor %s is %v; only F32 weights can be converted",
				f.Name, t.Name, t.Type)
		}
	}
	return nil
}

// Floats reads a whole F32 tensor into memory.
func (f *File) Floats(t Tensor) ([]float32, error) {
	if t.Type != F32 {
		return nil, fault.New(fault.UnknownArch, "convert the model to F32", "model %s: tensor %s is %v; only F32 values can be read",
			f.Name, t.Name, t.Type)
	}
	in := bufio.NewReaderSize(f.Data(t), 1<<16)
	out := make([]float32, t.Elements())
	var b [4]byte
	for i := range out {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return nil, fault.Wrap(fault.BadModel, err, "check that nothing changes the file while it is read",
				"model %s: tensor %s can't be read at byte %d", f.Name, t.Name, t.Offset+4*int64(i))
		}
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[:]))
	}
	return out, nil
}
