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
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/kit/fault"
)

const (
	magic            = "GGUF"
	defaultAlignment = 32
	maxAlignment     = 1 << 20
	maxKey           = 65535 // by the specification
	maxName          = 63    // ggml's limit
	maxDims          = 4     // ggml's limit
)

const again = "download or convert it again"

// errEnd marks a value that reaches past the end of the file.
var errEnd = errors.New("past the end of the file")

// Read reads a header from a source of size bytes. name is for errors.
func Read(source io.ReaderAt, size int64, name string) (*File, error) {
	f := &File{Name: name, Size: size, Alignment: defaultAlignment, source: source,
		entries: map[string]any{}, tensors: map[string]int{}}
	d := &decoder{f: f, in: bufio.NewReaderSize(io.NewSectionReader(source, 0, size), 1<<16)}
	kvs, tensors, err := d.header()
	if err == nil {
		err = d.metadata(kvs)
	}
	if err == nil {
		err = d.tensors(tensors)
	}
	if err == nil {
		err = f.place(d.pos)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// decoder reads the header. After an error, which it keeps, it returns zeros.
type decoder struct {
	f   *File
	in  *bufio.Reader
	pos int64 // offset of the next byte
	err error
}

func (d *decoder) left() int64 { return d.f.Size - d.pos }

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// bad fails because of the file's content.
func (d *decoder) bad(format string, args ...any) { d.fail(d.f.bad(again, format, args...)) }

// located returns the error, with what was being read and where it starts.
func (d *decoder) located(at int64, what string) error {
	var named *fault.Error
	switch err := d.err; {
	case err == nil, errors.As(err, &named):
		return err
	case errors.Is(err, errEnd), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return d.f.bad(again, "truncated: %s starts at byte %d and reaches past the end at %d", what, at, d.f.Size)
	}
	return fault.Wrap(fault.BadModel, d.err, "check the disk", "cannot read %s at byte %d", d.f.Name, d.pos)
}

// bytes returns nil after an error.
func (d *decoder) bytes(n int64) []byte {
	if n > d.left() {
		d.fail(errEnd)
	}
	if d.err != nil {
		return nil
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(d.in, b); err != nil {
		d.fail(err)
		return nil
	}
	d.pos += n
	return b
}

func (d *decoder) u32() uint32 { return uint32(d.uint(4)) }
func (d *decoder) u64() uint64 { return d.uint(8) }

// uint reads an integer of so many bytes.
func (d *decoder) uint(size int64) (n uint64) {
	for i, b := range d.bytes(size) {
		n |= uint64(b) << (8 * i)
	}
	return n
}

func (d *decoder) text() string {
	n := d.u64()
	if n > uint64(d.left()) {
		d.fail(errEnd)
		return ""
	}
	return string(d.bytes(int64(n)))
}

// header reads the magic number, the version and the two counts.
func (d *decoder) header() (kvs, tensors uint64, err error) {
	f := d.f
	if f.Size == 0 {
		return 0, 0, f.bad("download it again", "empty file")
	}
	begin := d.bytes(min(4, f.Size))
	if !strings.HasPrefix(magic, string(begin)) {
		return 0, 0, f.bad("name a GGUF file", "not a GGUF: starts with %q instead of %q", begin, magic)
	}
	if f.Size < 24 {
		return 0, 0, f.bad(again, "truncated: a GGUF header needs 24 bytes, the file has %d", f.Size)
	}
	f.Version = d.u32()
	switch v := f.Version; {
	case d.err != nil || v == 2 || v == 3:
	case v&0xffff == 0:
		return 0, 0, f.bad("convert it to little-endian (gguf_convert_endian.py)", "a big-endian GGUF, which is not supported")
	default:
		return 0, 0, f.bad("convert it with a current tool", "GGUF version %d is not supported, only 2 and 3", v)
	}
	tensors, kvs = d.u64(), d.u64()
	// A key with a value takes at least 13 bytes, a tensor's description at least 33.
	if kvs > uint64(d.left()/13) {
		d.bad("byte 16 counts %d metadata entries, too many for the %d bytes left", kvs, d.left())
	}
	if tensors > uint64(d.left()/33) {
		d.bad("byte 8 counts %d tensors, too many for the %d bytes left", tensors, d.left())
	}
	return kvs, tensors, d.located(0, "the header")
}

func (d *decoder) metadata(count uint64) error {
	for i := range count {
		at := d.pos
		key := d.text()
		if key == "" || len(key) > maxKey {
			d.bad("the key of metadata entry %d at byte %d has %d bytes, want 1 to %d", i, at, len(key), maxKey)
		}
		if _, twice := d.f.entries[key]; twice {
			d.bad("metadata %q appears twice, again at byte %d", key, at)
		}
		if d.err != nil {
			return d.located(at, "a metadata key")
		}
		at = d.pos
		value := d.value(key)
		if d.err != nil {
			return d.located(at, fmt.Sprintf("metadata %q", key))
		}
		d.f.entries[key] = value
		d.f.Metadata = append(d.f.Metadata, Entry{key, value})
	}
	if v, ok := d.f.Lookup("general.alignment"); ok {
		n, ok := v.(uint32)
		if !ok || n == 0 || n&(n-1) != 0 || n > maxAlignment {
			return d.f.bad(again, "metadata general.alignment is %v, want a uint32 power of two up to %d", v, maxAlignment)
		}
		d.f.Alignment = int64(n)
	}
	return nil
}

func (d *decoder) value(key string) any {
	at := d.pos
	kind := d.u32()
	if kind != kindArray {
		if least(kind) == 0 {
			d.bad("metadata %q has the unknown type %d at byte %d", key, kind, at)
			return nil
		}
		if one := d.array(kind, 1, key); one.IsValid() {
			return one.Index(0).Interface()
		}
		return nil
	}
	at = d.pos
	if kind = d.u32(); least(kind) == 0 {
		d.bad("metadata %q is an array of type %d at byte %d, which is not supported", key, kind, at)
		return nil
	}
	n := d.u64()
	if n > uint64(d.left()/least(kind)) {
		d.fail(errEnd)
		return nil
	}
	if list := d.array(kind, int(n), key); list.IsValid() {
		return list.Interface()
	}
	return nil
}

// array reads n values, whose minimal size fits into the rest of the file. It returns an invalid value after an error.
func (d *decoder) array(kind uint32, n int, key string) reflect.Value {
	if kind == kindString {
		list := make([]string, 0, min(n, 4096)) // n may be much too large
		for i := 0; i < n && d.err == nil; i++ {
			list = append(list, d.text())
		}
		return reflect.ValueOf(list)
	}
	at := d.pos
	b := d.bytes(int64(n) * least(kind))
	if d.err != nil {
		return reflect.Value{}
	}
	if kind == kindBool {
		if i := slices.IndexFunc(b, func(b byte) bool { return b > 1 }); i >= 0 {
			d.bad("metadata %q has %d at byte %d, want a bool (0 or 1)", key, b[i], at+int64(i))
			return reflect.Value{}
		}
	}
	list := reflect.MakeSlice(reflect.SliceOf(kinds[kind]), n, n)
	if _, err := binary.Decode(b, binary.LittleEndian, list.Interface()); err != nil {
		d.fail(err)
	}
	return list
}

func (d *decoder) tensors(count uint64) error {
	for i := range count {
		at := d.pos
		t := d.tensor(i)
		if _, twice := d.f.tensors[t.Name]; twice {
			d.bad("tensor %q is described twice, again at byte %d", t.Name, at)
		}
		if d.err != nil {
			return d.located(at, "the description of a tensor")
		}
		d.f.tensors[t.Name] = len(d.f.Tensors)
		d.f.Tensors = append(d.f.Tensors, t)
	}
	return nil
}

// tensor reads one description. Its Offset is relative to the data, whose position is not known yet.
func (d *decoder) tensor(i uint64) Tensor {
	at := d.pos
	t := Tensor{Name: d.text()}
	if t.Name == "" || len(t.Name) > maxName {
		d.bad("the name of tensor %d at byte %d has %d bytes, want 1 to %d", i, at, len(t.Name), maxName)
		return t
	}
	at = d.pos
	dims := d.u32()
	if dims == 0 || dims > maxDims {
		d.bad("tensor %q has %d dimensions at byte %d, want 1 to %d", t.Name, dims, at, maxDims)
		return t
	}
	for range dims {
		t.Shape = append(t.Shape, d.u64())
	}
	t.Type = Type(d.u32())
	offset := d.u64()
	if d.err != nil {
		return t
	}
	if err := d.f.measure(&t); err != nil {
		d.fail(err)
	}
	if offset > uint64(d.f.Size) {
		d.bad("truncated: tensor %s starts %d bytes into the data, the whole file has %d", t.Name, offset, d.f.Size)
	}
	t.Offset = int64(offset)
	return t
}

// measure calculates a tensor's size from its shape and type, if it is known.
func (f *File) measure(t *Tensor) error {
	l := t.Type.DType()
	limit := uint64(f.Size) // of blocks, or of values, which may have less than a byte each
	if !t.Type.Known() {
		l, limit = dtype.DType{Values: 1}, 16*limit
	}
	blocks := uint64(1)
	for i, n := range t.Shape {
		if i == 0 {
			if n%uint64(l.Values) != 0 {
				return f.bad(again, "tensor %q has rows of %d values, which is not a multiple of %v's block size %d",
					t.Name, n, t.Type, l.Values)
			}
			n /= uint64(l.Values)
		}
		if n == 0 {
			return f.bad(again, "tensor %q has shape %v, want dimensions of at least 1", t.Name, t.Shape)
		}
		// The product must not overflow, nor exceed what fits into the file.
		if n > limit || blocks > limit/n {
			return f.bad(again, "truncated: tensor %s of shape %v does not fit into the file of %d bytes", t.Name,
				t.Shape, f.Size)
		}
		blocks *= n
	}
	if t.Type.Known() && blocks > uint64(f.Size/l.Bytes) {
		return f.bad(again, "truncated: tensor %s of shape %v needs %d blocks of %d bytes, the file has %d bytes",
			t.Name, t.Shape, blocks, l.Bytes, f.Size)
	}
	t.Size = int64(blocks) * l.Bytes
	return nil
}

// place makes the tensors' offsets absolute and checks them. end is the end of the header.
func (f *File) place(end int64) error {
	start := (end + f.Alignment - 1) / f.Alignment * f.Alignment
	order := make([]*Tensor, len(f.Tensors))
	for i := range f.Tensors {
		order[i] = &f.Tensors[i]
	}
	slices.SortFunc(order, func(a, b *Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	for i, t := range order {
		if !t.Type.Known() { // the bytes up to the next tensor are the most that it can have
			next := f.Size - start
			if i+1 < len(order) {
				next = order[i+1].Offset
			}
			t.Size = max(next-t.Offset, 0)
		}
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
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
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; a.Offset+a.Size > b.Offset {
			return f.bad(again, "tensors %s and %s overlap at byte %d", a.Name, b.Name, b.Offset)
		}
	}
	return nil
}
