package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"slices"
	"sort"
	"strings"

	"llmparity/internal/fault"
)

const (
	magic            = "GGUF"
	defaultAlignment = 32
	maxAlignment     = 1 << 20 // beyond any page size in use; a larger one is a damaged file
	maxKey           = 65535   // by the format's definition
	maxName          = 63      // ggml's limit for a tensor's name
	maxDims          = 4       // ggml's too
)

const again = "download or convert the model again"

// errEnd marks a value that reaches past the end of the file.
var errEnd = errors.New("past the end of the file")

// Read reads a header from a source of size bytes, which name stands for in errors.
func Read(source io.ReaderAt, size int64, name string) (*File, error) {
	f := &File{Name: name, Size: size, Alignment: defaultAlignment, source: source,
		entries: map[string]int{}, tensors: map[string]int{}}
	d := &decoder{f: f, in: bufio.NewReaderSize(io.NewSectionReader(source, 0, size), 1<<16)}
	kvs, tensors, err := d.header()
	if err != nil {
		return nil, err
	}
	if err := d.metadata(kvs); err != nil {
		return nil, err
	}
	if err := d.tensors(tensors); err != nil {
		return nil, err
	}
	if err := f.place(d.pos); err != nil {
		return nil, err
	}
	return f, nil
}

// decoder walks through the header; pos is the offset of the next byte.
type decoder struct {
	f   *File
	in  *bufio.Reader
	pos int64
}

func (d *decoder) left() int64 { return d.f.Size - d.pos }

// wrap names the place of an error: where is what was being read, at is where it starts.
func (d *decoder) wrap(err error, at int64, where string) error {
	var named *fault.Error
	switch {
	case errors.As(err, &named):
		return err
	case errors.Is(err, errEnd), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return d.f.bad(again, "truncated: %s, which starts at byte %d, reaches past the end (the file has %d bytes)",
			where, at, d.f.Size)
	}
	return fault.Wrap(fault.BadModel, err, "check the disk", "cannot read model %s at byte %d", d.f.Name, d.pos)
}

func (d *decoder) bytes(n int64) ([]byte, error) {
	if n > d.left() {
		return nil, errEnd
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(d.in, b); err != nil {
		return nil, err
	}
	d.pos += n
	return b, nil
}

func (d *decoder) u32() (uint32, error) {
	b, err := d.bytes(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (d *decoder) u64() (uint64, error) {
	b, err := d.bytes(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

func (d *decoder) text() (string, error) {
	n, err := d.u64()
	if err != nil {
		return "", err
	}
	if n > uint64(d.left()) {
		return "", errEnd
	}
	b, err := d.bytes(int64(n))
	return string(b), err
}

// header reads the magic number, the version and the two counts.
func (d *decoder) header() (kvs, tensors uint64, err error) {
	f := d.f
	if f.Size == 0 {
		return 0, 0, f.bad("download the model again", "empty file")
	}
	begin, err := d.bytes(min(4, f.Size))
	if err != nil {
		return 0, 0, d.wrap(err, 0, "the magic number")
	}
	if !strings.HasPrefix(magic, string(begin)) {
		return 0, 0, f.bad("give a GGUF model file", "not a GGUF: begins with %q, a GGUF begins with %q", begin, magic)
	}
	if f.Size < 24 {
		return 0, 0, f.bad(again, "truncated: a GGUF header takes 24 bytes, the file has %d", f.Size)
	}
	if f.Version, err = d.u32(); err != nil {
		return 0, 0, d.wrap(err, 4, "the version")
	}
	if f.Version&0xffff == 0 && f.Version != 0 {
		return 0, 0, f.bad("convert it to little-endian", "a big-endian GGUF; only little-endian files are read")
	}
	if f.Version != 2 && f.Version != 3 {
		return 0, 0, f.bad("convert it with a current tool", "GGUF version %d at byte 4; versions 2 and 3 are read",
			f.Version)
	}
	if tensors, err = d.u64(); err != nil {
		return 0, 0, d.wrap(err, 8, "the number of tensors")
	}
	if kvs, err = d.u64(); err != nil {
		return 0, 0, d.wrap(err, 16, "the number of metadata entries")
	}
	// A key with a value takes at least 13 bytes, a tensor's description at least 33.
	if kvs > uint64(d.left()/13) {
		return 0, 0, f.bad(again, "byte 16 says %d metadata entries; the %d bytes left can't hold them", kvs, d.left())
	}
	if tensors > uint64(d.left()/33) {
		return 0, 0, f.bad(again, "byte 8 says %d tensors; the %d bytes left can't describe them", tensors, d.left())
	}
	return kvs, tensors, nil
}

func (d *decoder) metadata(count uint64) error {
	for i := range count {
		at := d.pos
		key, err := d.text()
		if err != nil {
			return d.wrap(err, at, "a metadata key")
		}
		if key == "" || len(key) > maxKey {
			return d.f.bad(again, "the key of metadata entry %d at byte %d has %d bytes; 1 to %d are right", i, at,
				len(key), maxKey)
		}
		if _, twice := d.f.entries[key]; twice {
			return d.f.bad(again, "metadata %q appears twice, again at byte %d", key, at)
		}
		at = d.pos
		value, err := d.value(key)
		if err != nil {
			return d.wrap(err, at, "metadata "+quote(key))
		}
		d.f.entries[key] = len(d.f.Metadata)
		d.f.Metadata = append(d.f.Metadata, Entry{key, value})
	}
	return d.alignment()
}

func (d *decoder) alignment() error {
	v, ok := d.f.Lookup("general.alignment")
	if !ok {
		return nil
	}
	n, ok := v.(uint32)
	if !ok || n == 0 || n&(n-1) != 0 || n > maxAlignment {
		return d.f.bad(again, "metadata general.alignment is %v; a uint32 power of two up to %d is right", v,
			maxAlignment)
	}
	d.f.Alignment = int64(n)
	return nil
}

func (d *decoder) value(key string) (any, error) {
	at := d.pos
	kind, err := d.u32()
	if err != nil {
		return nil, err
	}
	if kind != kindArray {
		if least(kind) == 0 {
			return nil, d.f.bad(again, "metadata %q has type %d at byte %d; 0 to 12 are known", key, kind, at)
		}
		one, err := d.array(kind, 1, key)
		if err != nil {
			return nil, err
		}
		return one.Index(0).Interface(), nil
	}
	at = d.pos
	if kind, err = d.u32(); err != nil {
		return nil, err
	}
	if least(kind) == 0 {
		return nil, d.f.bad(again, "metadata %q is an array of type %d at byte %d; arrays of 0 to 8 and 10 to 12 are read",
			key, kind, at)
	}
	n, err := d.u64()
	if err != nil {
		return nil, err
	}
	if n > uint64(d.left()/least(kind)) {
		return nil, errEnd
	}
	list, err := d.array(kind, int(n), key)
	if err != nil {
		return nil, err
	}
	return list.Interface(), nil
}

// array reads n values, of which there is room for the least in what is left of the file.
func (d *decoder) array(kind uint32, n int, key string) (reflect.Value, error) {
	if kind == kindString {
		// Grown by appending: strings may be far fewer than the bytes left allow.
		list := make([]string, 0, min(n, 4096))
		for range n {
			text, err := d.text()
			if err != nil {
				return reflect.Value{}, err
			}
			list = append(list, text)
		}
		return reflect.ValueOf(list), nil
	}
	at := d.pos
	b, err := d.bytes(int64(n) * least(kind))
	if err != nil {
		return reflect.Value{}, err
	}
	if kind == kindBool {
		if i := slices.IndexFunc(b, func(b byte) bool { return b > 1 }); i >= 0 {
			return reflect.Value{}, d.f.bad(again, "metadata %q holds %d at byte %d; a bool is 0 or 1", key, b[i],
				at+int64(i))
		}
	}
	list := reflect.MakeSlice(reflect.SliceOf(kinds[kind]), n, n)
	_, err = binary.Decode(b, binary.LittleEndian, list.Interface())
	return list, err
}

func (d *decoder) tensors(count uint64) error {
	for i := range count {
		at := d.pos
		t, err := d.tensor(i)
		if err != nil {
			return d.wrap(err, at, "the description of a tensor")
		}
		if _, twice := d.f.tensors[t.Name]; twice {
			return d.f.bad(again, "tensor %q is described twice, again at byte %d", t.Name, at)
		}
		d.f.tensors[t.Name] = len(d.f.Tensors)
		d.f.Tensors = append(d.f.Tensors, t)
	}
	return nil
}

// tensor reads one description; its Offset is still relative to the data, which is yet to be found.
func (d *decoder) tensor(i uint64) (Tensor, error) {
	var t Tensor
	var err error
	at := d.pos
	if t.Name, err = d.text(); err != nil {
		return t, err
	}
	if t.Name == "" || len(t.Name) > maxName {
		return t, d.f.bad(again, "the name of tensor %d at byte %d has %d bytes; 1 to %d are right", i, at, len(t.Name),
			maxName)
	}
	at = d.pos
	dims, err := d.u32()
	if err != nil {
		return t, err
	}
	if dims == 0 || dims > maxDims {
		return t, d.f.bad(again, "tensor %q has %d dimensions at byte %d; 1 to %d are right", t.Name, dims, at, maxDims)
	}
	for range dims {
		n, err := d.u64()
		if err != nil {
			return t, err
		}
		t.Shape = append(t.Shape, n)
	}
	at = d.pos
	kind, err := d.u32()
	if err != nil {
		return t, err
	}
	t.Type = Type(kind)
	offset, err := d.u64()
	if err != nil {
		return t, err
	}
	if err := d.f.measure(&t, at); err != nil {
		return t, err
	}
	if offset > uint64(d.f.Size) {
		return t, d.f.bad(again, "truncated: tensor %s starts %d bytes into the data, the whole file has %d", t.Name,
			offset, d.f.Size)
	}
	t.Offset = int64(offset)
	return t, nil
}

// measure works out a tensor's size in bytes from its shape and type; at is where the type stands in the file.
func (f *File) measure(t *Tensor, at int64) error {
	l, ok := layouts[t.Type]
	if !ok {
		return f.bad("convert the model to F32", "tensor %q has the unknown type %d at byte %d", t.Name, uint32(t.Type),
			at)
	}
	blocks := uint64(1)
	for i, n := range t.Shape {
		if i == 0 {
			if n%uint64(l.values) != 0 {
				return f.bad(again, "tensor %q has rows of %d values; %v is stored in blocks of %d", t.Name, n, t.Type,
					l.values)
			}
			n /= uint64(l.values)
		}
		if n == 0 {
			return f.bad(again, "tensor %q has the shape %v; every dimension must be at least 1", t.Name, t.Shape)
		}
		// The product may not overflow, and needs no more than the file has.
		if n > uint64(f.Size) || blocks > uint64(f.Size)/n {
			return f.bad(again, "truncated: tensor %s of shape %v needs more than the %d bytes that the file has",
				t.Name, t.Shape, f.Size)
		}
		blocks *= n
	}
	if blocks > uint64(f.Size/l.bytes) {
		return f.bad(again, "truncated: tensor %s of shape %v takes %d blocks of %d bytes, the file has %d bytes",
			t.Name, t.Shape, blocks, l.bytes, f.Size)
	}
	t.Size = int64(blocks) * l.bytes
	return nil
}

// place turns the tensors' offsets into offsets in the file and checks where they lie; end is where the header ends.
func (f *File) place(end int64) error {
	if len(f.Tensors) == 0 {
		return nil
	}
	start := (end + f.Alignment - 1) / f.Alignment * f.Alignment
	order := make([]int, len(f.Tensors))
	for i := range f.Tensors {
		t := &f.Tensors[i]
		order[i] = i
		if t.Offset%f.Alignment != 0 {
			return f.bad(again, "tensor %s starts %d bytes into the data, which is not a multiple of the alignment %d",
				t.Name, t.Offset, f.Alignment)
		}
		t.Offset += start
		if t.Offset+t.Size > f.Size {
			return f.bad(again, "truncated: tensor %s ends at byte %d, the file has %d", t.Name, t.Offset+t.Size,
				f.Size)
		}
	}
	sort.Slice(order, func(a, b int) bool { return f.Tensors[order[a]].Offset < f.Tensors[order[b]].Offset })
	for i := 1; i < len(order); i++ {
		a, b := f.Tensors[order[i-1]], f.Tensors[order[i]]
		if a.Offset+a.Size > b.Offset {
			return f.bad(again, "tensors %s and %s overlap at byte %d", a.Name, b.Name, b.Offset)
		}
	}
	return nil
}
