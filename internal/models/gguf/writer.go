package gguf

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
)

// Weights is a tensor to write: F32 values, or blocks of another type. Shape is as in Tensor.
type Weights struct {
	Name   string
	Shape  []uint64
	Values []float32
	// Stream, if set, replaces Values: it calls write for one piece after another.
	Stream func(write func([]float32) error) error
	// Type is the type of what Blocks writes.
	Type   Type
	Blocks func(write func([]byte) error) error
}

// size returns the tensor's bytes.
func (t Weights) size() uint64 {
	values, bytes := t.Type.Block()
	return uint64(Tensor{Shape: t.Shape}.Elements() / values * bytes)
}

// AsFloat32 returns metadata for a file of float32 values: without quantisation and layout.
func AsFloat32(metadata []Entry) []Entry {
	out := slices.DeleteFunc(slices.Clone(metadata), func(e Entry) bool {
		return e.Key == "general.quantization_version" || e.Key == "general.alignment"
	})
	for i, e := range out {
		if e.Key == "general.file_type" {
			out[i].Value = uint32(0) // all F32
		}
	}
	return out
}

// Unquantised returns a file's tensors as F32, streamed a few rows at a time.
func (f *File) Unquantised() []Weights {
	var out []Weights
	for _, t := range f.Tensors {
		out = append(out, Weights{Name: t.Name, Shape: t.Shape, Stream: func(write func([]float32) error) error {
			var rows Rows
			if err := rows.Reset(f, t, int(max(1, (1<<18)/t.Shape[0]))); err != nil {
				return err
			}
			for {
				values, err := rows.Next()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if err := write(values); err != nil {
					return err
				}
			}
		}})
	}
	return out
}

// Write writes a version 3 file. The same input gives the same bytes. It does not validate like Read.
func Write(w io.Writer, metadata []Entry, tensors []Weights) error {
	e := &encoder{out: bufio.NewWriterSize(w, 1<<16)}
	e.header(metadata, tensors)
	for _, t := range tensors {
		e.tensor(t)
		e.fill()
	}
	return e.end()
}

// header writes all that comes before the data.
func (e *encoder) header(metadata []Entry, tensors []Weights) {
	e.raw([]byte(magic))
	e.u32(3)
	e.u64(uint64(len(tensors)))
	e.u64(uint64(len(metadata)))
	for _, m := range metadata {
		e.text(m.Key)
		e.value(m)
	}
	offset := uint64(0)
	for _, t := range tensors {
		e.describe(t, offset)
		offset += pad(t.size())
	}
	e.fill()
}

// end writes what is buffered.
func (e *encoder) end() error {
	if e.err == nil {
		e.err = e.out.Flush()
	}
	if e.err != nil {
		return fmt.Errorf("write GGUF: %w", e.err)
	}
	return nil
}

func pad(n uint64) uint64 { return (n + defaultAlignment - 1) / defaultAlignment * defaultAlignment }

// encoder keeps the first error and the position.
type encoder struct {
	out *bufio.Writer
	pos uint64
	err error

	chunk []byte
}

func (e *encoder) raw(b []byte) {
	if e.err == nil {
		_, e.err = e.out.Write(b)
		e.pos += uint64(len(b))
	}
}

func (e *encoder) u32(v uint32) {
	e.raw(binary.LittleEndian.AppendUint32(nil, v))
}

func (e *encoder) u64(v uint64) {
	e.raw(binary.LittleEndian.AppendUint64(nil, v))
}

func (e *encoder) text(s string) {
	e.u64(uint64(len(s)))
	e.raw([]byte(s))
}

// tensor writes the values or blocks, whose number must match the shape.
func (e *encoder) tensor(t Weights) {
	begin := e.pos
	var err error
	switch {
	case t.Blocks != nil:
		err = t.Blocks(func(b []byte) error { e.raw(b); return e.err })
	case t.Stream != nil:
		err = t.Stream(e.floats)
	default:
		err = e.floats(t.Values)
	}
	if e.err = cmp.Or(e.err, err); e.err != nil {
		return
	}
	if n := e.pos - begin; n != t.size() {
		e.err = fmt.Errorf("tensor %s of shape %v has %d bytes of %v, want %d", t.Name, t.Shape, n, t.Type, t.size())
	}
}

func (e *encoder) floats(values []float32) error {
	for part := range slices.Chunk(values, 1<<12) {
		e.chunk, _ = binary.Append(e.chunk[:0], binary.LittleEndian, part) // floats have a fixed size
		e.raw(e.chunk)
	}
	return e.err
}

// fill pads with zeros to the alignment.
func (e *encoder) fill() {
	e.raw(make([]byte, pad(e.pos)-e.pos))
}

func (e *encoder) value(m Entry) {
	v, of := reflect.ValueOf(m.Value), reflect.TypeOf(m.Value)
	array := v.Kind() == reflect.Slice
	if array {
		of = of.Elem()
	}
	kind := slices.Index(kinds[:], of)
	if kind < 0 {
		e.err = cmp.Or(e.err, fmt.Errorf("metadata %s has a %T, which GGUF cannot store", m.Key, m.Value))
		return
	}
	if array {
		e.u32(kindArray)
	}
	e.u32(uint32(kind))
	if array {
		e.u64(uint64(v.Len()))
	}
	switch v := m.Value.(type) {
	case string:
		e.text(v)
	case []string:
		for _, s := range v {
			e.text(s)
		}
	default:
		b, err := binary.Append(nil, binary.LittleEndian, v)
		e.err = cmp.Or(e.err, err)
		e.raw(b)
	}
}

func (e *encoder) describe(t Weights, offset uint64) {
	e.text(t.Name)
	e.u32(uint32(len(t.Shape)))
	for _, d := range t.Shape {
		e.u64(d)
	}
	e.u32(uint32(t.Type))
	e.u64(offset)
}
