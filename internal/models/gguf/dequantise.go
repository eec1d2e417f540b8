package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// All decoders compute in float32 with one rounding per operation. Products are converted explicitly before additions,
// because Go may otherwise fuse the two operations, and values would differ between machines.

// Dequantise decodes whole blocks of a type.
func Dequantise(t Type, blocks []byte, values []float32) error {
	d, decode := t.DType(), decoders[t]
	if decode == nil {
		return fmt.Errorf("values of %v cannot be read", t)
	}
	bytes, count := int(d.Bytes), int(d.Values)
	if len(blocks)%bytes != 0 || len(blocks)/bytes*count != len(values) {
		return fmt.Errorf("%d bytes for %d values of %v, want %d bytes for each %d values", len(blocks), len(values), t,
			bytes, count)
	}
	if count == 1 {
		decode(blocks, values)
		return nil
	}
	for len(values) > 0 {
		decode(blocks[:bytes], values[:count])
		blocks, values = blocks[bytes:], values[count:]
	}
	return nil
}

func half(b []byte) float32 { return Half(binary.LittleEndian.Uint16(b)) }

// Half widens a 16-bit float, without loss. A multiplication corrects the exponent's bias, which also turns subnormal
// halves into normal numbers.
func Half(bits uint16) float32 {
	h := uint32(bits)
	sign, rest := h&0x8000<<16, h&0x7fff<<13
	if rest >= 0x1f<<23 { // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | rest&(1<<23-1))
	}
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(rest)*(1<<112)))
}

func decodeF32(b []byte, v []float32) {
	for ; len(v) > 0 && len(b) >= 4; b, v = b[4:], v[1:] {
		v[0] = math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
}

func decodeF16(b []byte, v []float32) {
	for ; len(v) > 0 && len(b) >= 2; b, v = b[2:], v[1:] {
		v[0] = half(b)
	}
}

func decodeBF16(b []byte, v []float32) {
	for ; len(v) > 0 && len(b) >= 2; b, v = b[2:], v[1:] {
		v[0] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	}
}

// Types with blocks of 32: a scale; for types ending in 1, a minimum; for 5 bits, all the fifth bits; then the low four
// bits of values j and j+16 together in a byte.

func decodeQ4_0(b []byte, v []float32) {
	var values [16]float32
	d := half(b)
	for i := range values {
		values[i] = d * float32(i-8)
	}
	lookUp(&values, b[2:18], v)
}

func decodeQ4_1(b []byte, v []float32) {
	var values [16]float32
	d, m := half(b), half(b[2:])
	for i := range values {
		values[i] = float32(d*float32(i)) + m
	}
	lookUp(&values, b[4:20], v)
}

// lookUp decodes a block of four-bit numbers, given the 16 values that they stand for.
func lookUp(values *[16]float32, q []byte, v []float32) {
	low, high := v[:16], v[16:32]
	for j, x := range q[:16] {
		low[j], high[j] = values[x&15], values[x>>4]
	}
}

func decodeQ5_0(b []byte, v []float32) {
	d, fifth, low, high := half(b), binary.LittleEndian.Uint32(b[2:]), v[:16], v[16:32]
	for j, x := range b[6:22] {
		low[j] = d * float32(int(uint32(x&15)|fifth>>j<<4&16)-16)
		high[j] = d * float32(int(uint32(x>>4)|fifth>>(j+16)<<4&16)-16)
	}
}

func decodeQ5_1(b []byte, v []float32) {
	d, m, fifth, low, high := half(b), half(b[2:]), binary.LittleEndian.Uint32(b[4:]), v[:16], v[16:32]
	for j, x := range b[8:24] {
		low[j] = float32(d*float32(uint32(x&15)|fifth>>j<<4&16)) + m
		high[j] = float32(d*float32(uint32(x>>4)|fifth>>(j+16)<<4&16)) + m
	}
}

func decodeQ8_0(b []byte, v []float32) {
	d, v := half(b), v[:32]
	for j, x := range b[2:34] {
		v[j] = d * float32(int8(x))
	}
}

// Types with blocks of 256: groups of 16 or 32 values with small scales of their own, times the block's scale. The low
// bits are packed so that groups share bytes, each at another shift.

func decodeQ2K(b []byte, v []float32) {
	scales, q, d, m := b[:16], b[16:80], half(b[80:]), half(b[82:])
	for g, s := range scales {
		scale, least := d*float32(s&15), float32(m*float32(s>>4))
		from, shift := q[g/8*32+g%2*16:][:16], g%8/2*2
		to := v[g*16:][:16]
		for j, x := range from {
			to[j] = float32(scale*float32(x>>shift&3)) - least
		}
	}
}

func decodeQ3K(b []byte, v []float32) {
	third, q, scales, d := b[:32], b[32:96], b[96:108], half(b[108:])
	for g := range 16 {
		low, high := scales[g%8]>>(g/8*4)&15, scales[8+g%4]>>(g/4*2)&3
		scale := d * float32(int(low|high<<4)-32)
		from, shift := q[g/8*32+g%2*16:][:16], g%8/2*2
		top, bit := third[g%2*16:][:16], g/2
		to := v[g*16:][:16]
		for j, x := range from {
			// The third bit is stored inverted: 4 is subtracted if it is not set.
			to[j] = scale * float32(int(x>>shift&3)+int(top[j]>>bit<<2&4)-4)
		}
	}
}

// scaleAndMin returns the scale and minimum of group g, six bits each, from 12 bytes. The first four groups have one
// byte each; the others share a byte for their low four bits and use the top two bits of the first bytes.
func scaleAndMin(s []byte, g int) (scale, least byte) {
	if g < 4 {
		return s[g] & 63, s[g+4] & 63
	}
	return s[g+4]&15 | s[g-4]>>2&48, s[g+4]>>4 | s[g]>>2&48
}

func decodeQ4K(b []byte, v []float32) { decodeGroups(b, make([]byte, 32), b[16:144], v) }
func decodeQ5K(b []byte, v []float32) { decodeGroups(b, b[16:48], b[48:176], v) }

// decodeGroups decodes eight groups of 32 values with four bits in q, and one in fifth.
func decodeGroups(b, fifth, q []byte, v []float32) {
	d, m, scales := half(b), half(b[2:]), b[4:16]
	for g := range 8 {
		s, l := scaleAndMin(scales, g)
		scale, least := d*float32(s), float32(m*float32(l))
		from, shift := q[g/2*32:][:32], g%2*4
		to := v[g*32:][:32]
		for j, x := range from {
			to[j] = float32(scale*float32(x>>shift&15|fifth[j]>>g<<4&16)) - least
		}
	}
}

func decodeQ6K(b []byte, v []float32) {
	q, high, scales, d := b[:128], b[128:192], b[192:208], half(b[208:])
	for g, s := range scales {
		scale := d * float32(int8(s))
		side, in := g/8, g%8 // which 128 values, and which 16 of them
		from, shift := q[side*64+in%4*16:][:16], in/4*4
		top, two := high[side*32+in%2*16:][:16], in/2*2
		to := v[g*16:][:16]
		for j, x := range from {
			to[j] = scale * float32(int(x>>shift&15|top[j]>>two<<4&48)-32)
		}
	}
}
