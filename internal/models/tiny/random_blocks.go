package tiny

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"llmparity/internal/models/gguf"
)

// blocks describes random blocks of a type: every bit is random but those of the float16 scales. steps is the deviation
// of a value, and below its mean, in units of the scale. The second scale, if any, takes the mean away.
type blocks struct {
	scale, least int // where they are; least is 0 if there is none
	steps, below float64
}

// bytes6 is the root mean square of six random bits, and signed8 that of a signed byte.
const bytes6, signed8 = 36.4, 73.9

var randomBlocks = map[gguf.Type]blocks{
	gguf.Q4_0: {steps: 4.61},
	gguf.Q4_1: {least: 2, steps: 4.61, below: 7.5},
	gguf.Q5_0: {steps: 9.23},
	gguf.Q5_1: {least: 2, steps: 9.23, below: 15.5},
	gguf.Q8_0: {steps: 73.9},
	gguf.Q4_K: {least: 2, steps: 6.5 * bytes6, below: -7.5},
	gguf.Q5_K: {least: 2, steps: 13 * bytes6, below: -15.5},
	gguf.Q6_K: {scale: 208, steps: 18.5 * signed8},
}

// typeOf returns the type of a tensor. As in files of llama.cpp, some are of a second type.
func (s Spec) typeOf(want gguf.Tensor) gguf.Type {
	if s.Type == "" || len(want.Shape) < 2 {
		return gguf.F32
	}
	name := s.Type
	second := strings.Contains(want.Name, "attn_v.") || strings.Contains(want.Name, "ffn_down.")
	head := want.Name == "output.weight" || s.Tied && want.Name == "token_embd.weight"
	if s.SecondType != "" && (head || second && strings.Contains(want.Name, "blk.0.")) {
		name = s.SecondType
	}
	t, _ := gguf.TypeNamed(name)
	return t
}

// quantised returns a function that writes random blocks, a row at a time.
func (s Spec) quantised(r *random, want gguf.Tensor, t gguf.Type, silent func(row int) bool) func(
	func([]byte) error) error {
	_, deviation := s.scale(want.Name)
	values, size := t.Block()
	of := randomBlocks[t]
	return func(write func([]byte) error) error {
		row := make([]byte, int64(want.Shape[0])/values*size)
		for i := range int(want.Shape[1]) {
			if silent(i) {
				clear(row)
			} else {
				for block := range slices.Chunk(row, int(size)) {
					of.fill(r, block, deviation)
				}
			}
			if err := write(row); err != nil {
				return err
			}
		}
		return nil
	}
}

func (b blocks) fill(r *random, block []byte, deviation float64) {
	for at := range block {
		block[at] = byte(r.next() >> 32)
	}
	scale := deviation / b.steps * (0.75 + float64(r.next()&0xff)/512)
	if b.least == 0 && r.next()&1 == 1 { // the numbers of some types have no middle
		scale = -scale
	}
	binary.LittleEndian.PutUint16(block[b.scale:], half(scale))
	if b.least > 0 {
		binary.LittleEndian.PutUint16(block[b.least:], half(-scale*b.below))
	}
}

// half returns a float16 near v, which is small.
func half(v float64) uint16 {
	sign := uint16(0)
	if v < 0 {
		sign, v = 1<<15, -v
	}
	if v < 1.0/(1<<14) {
		return sign | uint16(v*(1<<24))
	}
	return sign | uint16(math.Float32bits(float32(v))>>13-112<<10)
}
