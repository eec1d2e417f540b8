package gguf

import (
	"fmt"
	"reflect"
	"strings"
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

// format describes a type: its name, the number of values and bytes in a block, and the function that decodes a block
// (any number of single values); nil: unreadable.
type format struct {
	name          string
	values, bytes int64
	decode        func(b []byte, v []float32)
}

var formats = map[Type]format{
	F32: {"F32", 1, 4, decodeF32}, F16: {"F16", 1, 2, decodeF16}, BF16: {"BF16", 1, 2, decodeBF16},
	Q4_0: {"Q4_0", 32, 18, decodeQ4_0}, Q4_1: {"Q4_1", 32, 20, decodeQ4_1}, Q5_0: {"Q5_0", 32, 22, decodeQ5_0},
	Q5_1: {"Q5_1", 32, 24, decodeQ5_1}, Q8_0: {"Q8_0", 32, 34, decodeQ8_0}, 9: {"Q8_1", 32, 40, nil},
	Q2_K: {"Q2_K", 256, 84, decodeQ2K}, Q3_K: {"Q3_K", 256, 110, decodeQ3K}, Q4_K: {"Q4_K", 256, 144, decodeQ4K},
	Q5_K: {"Q5_K", 256, 176, decodeQ5K}, Q6_K: {"Q6_K", 256, 210, decodeQ6K}, 15: {"Q8_K", 256, 292, nil},
	16: {"IQ2_XXS", 256, 66, nil}, 17: {"IQ2_XS", 256, 74, nil}, 18: {"IQ3_XXS", 256, 98, nil},
	19: {"IQ1_S", 256, 50, nil}, 20: {"IQ4_NL", 32, 18, nil}, 21: {"IQ3_S", 256, 110, nil},
	22: {"IQ2_S", 256, 82, nil}, 23: {"IQ4_XS", 256, 136, nil}, 24: {"I8", 1, 1, nil}, 25: {"I16", 1, 2, nil},
	26: {"I32", 1, 4, nil}, 27: {"I64", 1, 8, nil}, 28: {"F64", 1, 8, nil}, 29: {"IQ1_M", 256, 56, nil},
	34: {"TQ1_0", 256, 54, nil}, 35: {"TQ2_0", 256, 66, nil}, 39: {"MXFP4", 32, 17, nil}, 40: {"NVFP4", 64, 36, nil},
	41: {"Q1_0", 128, 18, nil},
}

func (t Type) String() string {
	if f, ok := formats[t]; ok {
		return f.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Readable reports whether the values of a type can be read.
func (t Type) Readable() bool { return formats[t].decode != nil }

// Known reports whether the name and the size of a type are known.
func (t Type) Known() bool { return formats[t].bytes > 0 }

// TypeNamed returns the type of a name in any case.
func TypeNamed(name string) (t Type, ok bool) {
	for t, f := range formats {
		if strings.EqualFold(f.name, name) {
			return t, true
		}
	}
	return 0, false
}

// Block returns the values and bytes of a block; zeros for an unknown type.
func (t Type) Block() (values, bytes int64) { return formats[t].values, formats[t].bytes }

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
