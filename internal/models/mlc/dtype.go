package mlc

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"llmparity/internal/dtype"
	"llmparity/internal/kit/fault"
)

// The types in which a package's weights can be stored.
const (
	Float32 = "float32"
	Float16 = "float16"
)

// floats is a dtype of weights that packages are written in.
type floats struct {
	dtype.DType
	append func(to []byte, values []float32) ([]byte, error)
}

func floatsOf(name string) (floats, error) {
	d, _ := dtype.Named(cmp.Or(name, Float32))
	switch d.Torch {
	case Float32:
		return floats{d, appendFloats}, nil
	case Float16:
		return floats{d, AppendHalves}, nil
	}
	return floats{}, fault.New(fault.Usage, "choose one of them", "cannot write weights of type %q, only %s and %s",
		name, Float32, Float16)
}

// quantization is MLC's name for a package that uses it.
func (d floats) quantization() string { return "q0" + d.Name }

// appendFloats appends values as they lie in memory: all processors that we run on are little-endian, as packages are.
func appendFloats(to []byte, values []float32) ([]byte, error) {
	return append(to, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))...), nil
}

// errRange is a value beyond the range of a 16-bit float.
type errRange float32

func (v errRange) Error() string { return fmt.Sprintf("value %g exceeds ±65504", float32(v)) }

// AppendHalves appends values as 16-bit floats. A value beyond their range is an error.
func AppendHalves(to []byte, values []float32) ([]byte, error) {
	at := len(to)
	to = slices.Grow(to, 2*len(values))[:at+2*len(values)]
	out := to[at:]
	for i, v := range values {
		h, ok := half(v)
		if !ok {
			return to, errRange(v)
		}
		binary.LittleEndian.PutUint16(out[2*i:], h)
	}
	return to, nil
}

// half rounds to the nearest 16-bit float, ties to even. It is not ok if the result would be infinite. Small values
// become subnormal or zero.
func half(v float32) (h uint16, ok bool) {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	b &^= 1 << 31
	switch {
	case b > 0x7f800000: // NaN
		return sign | 0x7e00, true
	case b >= 0x477ff000: // 65520 rounds to 65536
		return 0, false
	case b < 0x38800000: // subnormal: adding 0.5 rounds at the right bit
		const magic = 0.5
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+magic)-math.Float32bits(magic)), true
	}
	b += 0xfff + b>>13&1
	return sign | uint16(b>>13-112<<10), true
}

// Plain returns the dtype of weights that a quantisation of MLC's leaves as they are; else its name.
func Plain(quantization string) string {
	if p, ok := dtype.PackedAs(quantization); ok && p.Bits == 0 {
		return p.Plain.Name
	}
	return quantization
}
