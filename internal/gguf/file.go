// Package gguf reads and writes GGUF model files: metadata, the list of tensors, and each tensor's bytes,
// little-endian, version 3 (version 2, which differs in nothing but its number, is read too).
//
// It is strict, because what it accepts is converted and then compared with another engine that read the same file: a
// tensor that reaches past the end, overlaps another or has no known size is an error, and so is a model with a
// tensor or a setting that the conversion would silently leave out. Of architectures it knows llama and qwen2. It never
// allocates more than the file's own size can justify.
//
// Values come out as float32, whatever they are stored as. It can't read big-endian files, version 1, models split over
// several files, or arrays of arrays; of the quantised types it reads the usual ones (Q4_0 to Q8_0, Q2_K to Q6_K), of
// the others it knows the sizes only. It quantises nothing.
package gguf

import (
	"errors"
	"fmt"
	"io"
	"os"

	"llmparity/internal/fault"
)

// Entry is one piece of metadata. Value is a uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32,
// float64, bool or string, or a slice of one of these.
type Entry struct {
	Key   string
	Value any
}

// Tensor is one tensor's description. Shape has the fastest-varying dimension first, as in the file: a matrix of R rows
// with C columns has the shape [C, R].
type Tensor struct {
	Name   string
	Type   Type
	Shape  []uint64
	Offset int64 // from the start of the file
	Size   int64 // in bytes
}

// Elements counts the tensor's values.
func (t Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= int64(d)
	}
	return n
}

// File is an open GGUF file. Its fields are read-only.
type File struct {
	Name      string // the path, or what the caller calls the source
	Size      int64
	Version   uint32
	Alignment int64
	Metadata  []Entry // in the file's order
	Tensors   []Tensor

	source  io.ReaderAt
	opened  *os.File // nil where the source is no file
	asOpen  os.FileInfo
	entries map[string]int
	tensors map[string]int
}

// Open reads the header of the file at path; tensor data stays on disk.
func Open(path string) (*File, error) {
	const do = "give the path of a GGUF model file"
	file, info, err := openRegular(path)
	if err != nil {
		return nil, fault.Wrap(fault.BadModel, bare(err), do, "cannot open model %s", path)
	}
	f, err := Read(file, info.Size(), path)
	if err != nil {
		file.Close()
		return nil, err
	}
	f.opened, f.asOpen = file, info
	return f, nil
}

// openRegular looks before it opens: opening a pipe waits for somebody who writes into it.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("it is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err = file.Stat(); err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// bare drops the path that os errors repeat.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Close releases the file. Readers made by Data stop working.
func (f *File) Close() error {
	if f.opened == nil {
		return nil
	}
	return f.opened.Close()
}

// unchanged says whether the file is still the one whose header was read, as far as its size and time can tell. It is
// asked at the end of each tensor: what was read before a change, and what after, are not one model.
func (f *File) unchanged() error {
	if f.opened == nil {
		return nil
	}
	now, err := f.opened.Stat()
	if err != nil {
		return fault.Wrap(fault.BadModel, bare(err), "check the disk", "cannot read model %s", f.Name)
	}
	if now.Size() != f.asOpen.Size() || !now.ModTime().Equal(f.asOpen.ModTime()) {
		return f.bad("wait until it is whole and try again", "the file was changed while it was read")
	}
	return nil
}

// Lookup gives the value under a key.
func (f *File) Lookup(key string) (any, bool) {
	i, ok := f.entries[key]
	if !ok {
		return nil, false
	}
	return f.Metadata[i].Value, true
}

// Tensor gives the description of a tensor.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.tensors[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Data reads a tensor's bytes, and nothing past them. t must come from f.
func (f *File) Data(t Tensor) *io.SectionReader {
	return io.NewSectionReader(f.source, t.Offset, t.Size)
}

// bad is an error about the file's content.
func (f *File) bad(do, format string, args ...any) error {
	return f.fault(fault.BadModel, do, format, args)
}

func (f *File) fault(kind fault.Kind, do, format string, args []any) error {
	return fault.New(kind, do, "model %s: %s", f.Name, fmt.Sprintf(format, args...))
}
