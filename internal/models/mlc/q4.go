package mlc

import (
	"encoding/binary"
	"math"
	"slices"
)

// GGUF's Q4_0 and MLC's q4f16_1 and q4f32_1 divide the rows of a matrix into the same groups of 32, each with a scale.
// Q4_0 has the values (p-8)·d, MLC (q-7)·s. Both cover 16 numbers, one apart, so a group changes its sign where one of
// its numbers is beyond the other's range. The conversions are exact and inverse to each other, also for scales that
// are negative, infinite or not a number.

// Sizes of a group in bytes: a Q4_0 block, and MLC's numbers.
const (
	groupQ4   = 32 // values
	blockQ4_0 = 18 // the scale, then the numbers of values j and j+16 in byte j
	packedQ4  = 16 // the numbers of values 2j and 2j+1 in byte j, lower half first
)

const signF16 = 1 << 15

// ones is the number 1 in each of 16 places of four bits.
const ones = 0x1111111111111111

// PackQ4 writes the numbers of a Q4_0 block as MLC stores them, and returns their scale, a float16.
func PackQ4(packed, block []byte) (scale uint16) {
	first, second := binary.LittleEndian.Uint64(block[2:]), binary.LittleEndian.Uint64(block[10:])
	low := squeeze(first) | squeeze(second)<<32
	high := squeeze(first>>4) | squeeze(second>>4)<<32
	if hasZero(first) || hasZero(second) {
		low, high = ^low, ^high // 15-p
	} else {
		low, high = low-ones, high-ones // p-1, which does not borrow
	}
	binary.LittleEndian.PutUint64(packed, low)
	binary.LittleEndian.PutUint64(packed[8:], high)
	return scaleQ4(block)
}

// scaleQ4 returns only the scale that PackQ4 returns.
func scaleQ4(block []byte) uint16 {
	scale := binary.LittleEndian.Uint16(block)
	if hasZero(binary.LittleEndian.Uint64(block[2:])) || hasZero(binary.LittleEndian.Uint64(block[10:])) {
		scale ^= signF16
	}
	return scale
}

// hasZero reports whether one of 16 numbers is 0.
func hasZero(v uint64) bool { return (v-ones)&^v&(8*ones) != 0 }

// squeeze moves the lower halves of eight bytes together.
func squeeze(v uint64) uint64 {
	v &= 0x0f0f0f0f0f0f0f0f
	v = (v | v>>4) & 0x00ff00ff00ff00ff
	v = (v | v>>8) & 0x0000ffff0000ffff
	return (v | v>>16) & 0xffffffff
}

// UnpackQ4 writes a Q4_0 block from MLC's numbers and their scale, a float16. It is the inverse of PackQ4.
func UnpackQ4(block, packed []byte, scale uint16) {
	negate := has(packed[:packedQ4], 15)
	if negate {
		scale ^= signF16
	}
	number := func(i int) byte {
		q := packed[i/2] >> (i % 2 * 4) & 15
		if negate {
			return 15 - q
		}
		return q + 1
	}
	binary.LittleEndian.PutUint16(block, scale)
	for j := range block[2:blockQ4_0] {
		block[2+j] = number(j) | number(j+16)<<4
	}
}

// has reports whether one of the numbers, two a byte, is n.
func has(numbers []byte, n byte) bool {
	return slices.ContainsFunc(numbers, func(v byte) bool { return v&15 == n || v>>4 == n })
}

// QuantizeQ4 appends values as blocks of Q4_0, rounded as llama.cpp's quantize_row_q4_0_ref does.
func QuantizeQ4(to []byte, values []float32) ([]byte, error) {
	for ; len(values) > 0; values = values[groupQ4:] {
		var most, d, inverse float32
		for _, v := range values[:groupQ4] {
			if math.Abs(float64(v)) > math.Abs(float64(most)) {
				most = v
			}
		}
		if d = most / -8; d != 0 {
			inverse = 1 / d
		}
		scale, ok := half(d)
		if !ok {
			return to, errRange(d)
		}
		number := func(v float32) byte {
			return byte(min(15, int8(float32(v*inverse)+8.5))) // rounded in between: not one fused operation
		}
		to = binary.LittleEndian.AppendUint16(to, scale)
		for j, v := range values[:groupQ4/2] {
			to = append(to, number(v)|number(values[j+groupQ4/2])<<4)
		}
	}
	return to, nil
}
