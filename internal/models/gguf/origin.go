package gguf

import (
	"errors"
	"io"
)

// FourBits is what MadeFrom returns.
const FourBits = "4-bit weights"

// MadeFrom returns what the file was converted from, if its values show it: FourBits; empty otherwise. Types of 4 bits
// have at most 16 values in a block of 32, and a conversion to a type of 8 bits or more leaves them apart. Of weights
// that were never quantised, almost no block has so few.
func (f *File) MadeFrom() (string, error) {
	for _, t := range f.Tensors {
		switch t.Type {
		case F32, F16, BF16, Q8_0:
		default:
			continue
		}
		if len(t.Shape) < 2 || t.Shape[0]%fourBitBlock != 0 || t.Elements() < 256*fourBitBlock {
			continue
		}
		if few, err := f.fewValues(t); few || err != nil {
			return FourBits, err
		}
	}
	return "", nil
}

// fourBitBlock is the number of values that share a scale in all types of 4 bits.
const fourBitBlock = 32

// fewValues reports whether no block at the beginning of a matrix has more than 16 values. It is false if all blocks
// have hardly any, because such a matrix says nothing.
func (f *File) fewValues(t Tensor) (bool, error) {
	const most, values = 16, 1 << 18
	var rows Rows
	if err := rows.Reset(f, t, 1); err != nil {
		return false, err
	}
	richest := 0
	for range max(1, values/int(t.Shape[0])) {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, err
		}
		for ; len(row) > 0; row = row[fourBitBlock:] {
			seen := map[float32]bool{}
			for _, v := range row[:fourBitBlock] {
				seen[v] = true
			}
			if richest = max(richest, len(seen)); richest > most {
				return false, nil
			}
		}
	}
	return richest > most/2, nil
}
