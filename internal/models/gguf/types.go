package gguf

import (
	"fmt"
	"reflect"
	"strings"

	"llmparity/internal/dtype"
)

// Type is the storage format of a tensor's values.
type Type uint32

// The types whose values can be read. Of the others only name and size are known.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q4_1 Type = 3
	Q5_0 Type = 6
	Q5_1 Type = 7
	Q8_0 Type = 8
	Q2_K Type = 10
	Q3_K Type = 11
	Q4_K Type = 12
	Q5_K Type = 13
	Q6_K Type = 14
	BF16 Type = 30
)

// decoders decode a block, or any number of single values, of the types that can be read.
var decoders = map[Type]func(b []byte, v []float32){
	F32: decodeF32, F16: decodeF16, BF16: decodeBF16, Q4_0: decodeQ4_0, Q4_1: decodeQ4_1, Q5_0: decodeQ5_0,
	Q5_1: decodeQ5_1, Q8_0: decodeQ8_0, Q2_K: decodeQ2K, Q3_K: decodeQ3K, Q4_K: decodeQ4K, Q5_K: decodeQ5K,
	Q6_K: decodeQ6K,
}

// DType returns the row of a type in the table of dtypes; the zero one for an unknown type.
func (t Type) DType() dtype.DType {
	d, _ := dtype.OfGGUF(uint32(t))
	return d
}

func (t Type) String() string {
	if name := t.DType().GGUF; name != "" {
		return name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Readable reports whether the values of a type can be read.
func (t Type) Readable() bool { return decoders[t] != nil }

// Known reports whether the name and the size of a type are known.
func (t Type) Known() bool { return t.DType().Bytes > 0 }

// TypeNamed returns the type of a name in any case.
func TypeNamed(name string) (t Type, ok bool) {
	d, _ := dtype.Named(name)
	return Type(d.ID), strings.EqualFold(d.GGUF, name) && name != ""
}

// Block returns the values and bytes of a block; zeros for an unknown type.
func (t Type) Block() (values, bytes int64) {
	d := t.DType()
	return d.Values, d.Bytes
}

// The kinds of metadata values that have a form of their own, by number.
const (
	kindBool   = 7
	kindString = 8
	kindArray  = 9
)

// kinds are the Go types of the kinds. An array has no type of its own.
var kinds = [...]reflect.Type{reflect.TypeFor[uint8](), reflect.TypeFor[int8](), reflect.TypeFor[uint16](),
	reflect.TypeFor[int16](), reflect.TypeFor[uint32](), reflect.TypeFor[int32](), reflect.TypeFor[float32](),
	kindBool: reflect.TypeFor[bool](), kindString: reflect.TypeFor[string](), kindArray: reflect.TypeFor[struct{}](),
	reflect.TypeFor[uint64](), reflect.TypeFor[int64](), reflect.TypeFor[float64]()}

// least returns the minimal size of a value; 0 for unknown kinds and arrays.
func least(kind uint32) int64 {
	switch {
	case kind == kindString: // the length
		return 8
	case kind < uint32(len(kinds)):
		return int64(kinds[kind].Size())
	}
	return 0
}
