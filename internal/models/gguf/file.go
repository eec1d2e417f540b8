// Package gguf reads and writes GGUF model files: metadata, the list of tensors, and each tensor's bytes. It reads
// little-endian files of version 2 and 3.
//
// It is strict, because its models are converted and then compared with another engine that reads the same file. A
// tensor that is truncated, overlaps another or has an unknown size is an error, and so is a tensor or setting that the
// conversion would drop. It never allocates more than the size of the file justifies.
//
// Values are decoded to float32. Big-endian files, version 1 and arrays of arrays cannot be read. The parts of a split
// model are read as one file. Of the quantised types, Q4_0 to Q8_0 and Q2_K to Q6_K can be decoded; of the others only
// the sizes are known. It does not quantise.
package gguf

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/kit/whole"
)

// Entry is a piece of metadata. Value is a uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64,
// bool or string, or a slice of these.
type Entry struct {
	Key   string
	Value any
}

// Tensor describes a tensor. Shape has the fastest-varying dimension first: R rows of C columns have shape [C, R].
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

// Slice describes some of a tensor's rows, or values of a vector, as a tensor.
func (t Tensor) Slice(first, count int64) Tensor {
	last := len(t.Shape) - 1
	each := t.Size / int64(t.Shape[last])
	t.Shape = slices.Clone(t.Shape)
	t.Shape[last], t.Offset, t.Size = uint64(count), t.Offset+first*each, count*each
	return t
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
	opened  *os.File // nil if the source is not a file
	asOpen  os.FileInfo
	parts   []*File // of a split model
	entries map[string]any
	tensors map[string]int
}

// Open reads the header of the file at path, or those of all parts of a split model; tensor data stays on disk.
func Open(path string) (*File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	return joined(f)
}

func open(path string) (*File, error) {
	const do = "name a GGUF file"
	file, err := regular.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.BadModel, err, do, "cannot open %s", path)
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, fault.Wrap(fault.BadModel, regular.Cause(err), do, "cannot open %s", path)
	}
	f, err := Read(file, info.Size(), path)
	if err != nil {
		file.Close()
		return nil, err
	}
	f.opened, f.asOpen = file, info
	return f, nil
}

// Close releases the file. Readers made by Data stop working.
func (f *File) Close() (err error) {
	for _, p := range f.parts {
		err = errors.Join(err, p.Close())
	}
	if f.opened == nil {
		return err
	}
	return f.opened.Close()
}

// unchanged fails if the file has changed since its header was read, by size and time. Called at the end of each
// tensor.
func (f *File) unchanged() error {
	for _, p := range f.parts {
		if err := p.unchanged(); err != nil {
			return err
		}
	}
	if f.opened == nil {
		return nil
	}
	now, err := f.opened.Stat()
	if err != nil {
		return fault.Wrap(fault.BadModel, regular.Cause(err), "check the disk", "cannot read %s", f.Name)
	}
	if now.Size() != f.asOpen.Size() || !now.ModTime().Equal(f.asOpen.ModTime()) {
		return f.bad("wait until it is complete, then try again", "the file changed while it was read")
	}
	return nil
}

// Lookup returns the value of a key.
func (f *File) Lookup(key string) (any, bool) {
	v, ok := f.entries[key]
	return v, ok
}

// Tensor returns the description of a tensor.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.tensors[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Data returns a reader of a tensor's bytes. t must come from f.
func (f *File) Data(t Tensor) *io.SectionReader {
	return io.NewSectionReader(f.source, t.Offset, t.Size)
}

// SHA256 hashes the whole file through the open descriptor, so that a file that replaced it by name has no effect.
func (f *File) SHA256(ctx context.Context) (string, error) {
	h := sha256.New()
	_, err := io.CopyBuffer(whole.Until(ctx, h), io.NewSectionReader(f.source, 0, f.Size), make([]byte, 1<<20))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fault.Wrap(fault.BadModel, regular.Cause(err), "check the disk", "cannot read %s", f.Name)
	}
	return hex.EncodeToString(h.Sum(nil)), f.unchanged()
}

// RequireHash returns an error if the file is not the one with a hash, which is empty if any will do.
func (f *File) RequireHash(ctx context.Context, want string) error {
	if want == "" {
		return nil
	}
	sum, err := f.SHA256(ctx)
	if err == nil && sum != want {
		err = fault.New(fault.BadModel, "leave it unchanged during a run, and try again", "%s was replaced", f.Name)
	}
	return err
}

// bad returns an error about the file's content.
func (f *File) bad(do, format string, args ...any) error {
	return f.fault(fault.BadModel, do, format, args)
}

func (f *File) fault(kind fault.Kind, do, format string, args []any) error {
	return fault.New(kind, do, "%s: %s", f.Name, fmt.Sprintf(format, args...))
}
