package tiny

import (
	"encoding/binary"
	"io"
	"math"
	"slices"

	"llmparity/internal/models/gguf"
)

// Form is the tiny model with matrices of another type.
type Form struct {
	Type gguf.Type

	file     uint32 // the number of the type of such files
	quantise func(to []byte, values []float32) []byte
}

// Forms are the quantised ones. Values are rounded as llama.cpp does, and the scales of blocks towards zero.
func Forms() []Form {
	return []Form{{Type: gguf.Q4_0, file: 2, quantise: toQ4}, {Type: gguf.Q8_0, file: 7, quantise: toQ8}}
}

// Write writes the model with matrices of this type. Norms stay float32.
func (f Form) Write(w io.Writer) error {
	entries, all := metadata(), weights()
	for i, e := range entries {
		if e.Key == "general.file_type" {
			entries[i].Value = f.file
		}
	}
	entries = append(entries, gguf.Entry{Key: "general.quantization_version", Value: uint32(2)})
	for i, matrix := range all {
		if len(matrix.Shape) < 2 {
			continue
		}
		all[i] = gguf.Weights{Name: matrix.Name, Shape: matrix.Shape, Type: f.Type,
			Blocks: func(write func([]byte) error) error {
				return matrix.Stream(func(rows []float32) error { return write(f.quantise(nil, rows)) })
			}}
	}
	return gguf.Write(w, entries, all)
}

// WriteFile writes the form to path, which appears when it is complete.
func (f Form) WriteFile(path string) error { return writeFile(path, f.Write) }

// blockLength is how many values of a row a block has.
const blockLength = 32

func toQ4(to []byte, values []float32) []byte {
	for values := range slices.Chunk(values, blockLength) {
		var most, inverse float32
		for _, v := range values {
			if math.Abs(float64(v)) > math.Abs(float64(most)) {
				most = v
			}
		}
		scale := most / -8
		if scale != 0 {
			inverse = 1 / scale
		}
		number := func(v float32) byte {
			return byte(min(15, int8(float32(v*inverse)+8.5))) // rounded in between: not one fused operation
		}
		to = binary.LittleEndian.AppendUint16(to, half(float64(scale)))
		for j, v := range values[:blockLength/2] {
			to = append(to, number(v)|number(values[j+blockLength/2])<<4)
		}
	}
	return to
}

func toQ8(to []byte, values []float32) []byte {
	for values := range slices.Chunk(values, blockLength) {
		var most, inverse float32
		for _, v := range values {
			most = max(most, float32(math.Abs(float64(v))))
		}
		scale := most / 127
		if scale != 0 {
			inverse = 1 / scale
		}
		to = binary.LittleEndian.AppendUint16(to, half(float64(scale)))
		for _, v := range values {
			to = append(to, byte(int8(math.Round(float64(float32(v*inverse))))))
		}
	}
	return to
}
