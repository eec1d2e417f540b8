// Package safetensors reads and writes the files in which Hugging Face folders have their weights: a header in JSON,
// and then the tensors, row by row. A model may be in several files, which an index lists.
package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
)

// The names of a folder's only file, and of the index of several.
const (
	File  = "model.safetensors"
	Index = "model.safetensors.index.json"
)

// maxHeader is the format's own limit, and maxIndex more than any index has.
const (
	maxHeader = 100 << 20
	maxIndex  = 100 << 20
)

// Tensor is a tensor in a file.
type Tensor struct {
	Name  string
	DType string // F32, BF16 …
	Shape []int64
	Bytes int64
	Path  string // of the file
	At    int64  // in the file
}

// entry describes a tensor in a header.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// Sizes are the bytes of a value, by dtype.
var Sizes = map[string]int64{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1,
	"BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}

// Files lists the files with a folder's weights; none if it has no such files.
func Files(dir string) ([]string, error) {
	path := filepath.Join(dir, Index)
	if _, err := os.Stat(path); err != nil {
		if _, err := os.Stat(filepath.Join(dir, File)); err != nil {
			return nil, nil
		}
		return []string{filepath.Join(dir, File)}, nil
	}
	var index struct {
		Files map[string]string `json:"weight_map"` // by tensor
	}
	if err := regular.JSON(path, maxIndex, &index); err != nil {
		return nil, bad(path, "damaged index: %v", err)
	}
	var files []string
	for _, name := range slices.Compact(slices.Sorted(maps.Values(index.Files))) {
		if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
			return nil, bad(path, "the file %q is not in the folder", name)
		}
		files = append(files, filepath.Join(dir, name))
	}
	return files, nil
}

// Read reads the headers of a folder's files.
func Read(dir string) (map[string]Tensor, error) {
	files, err := Files(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]Tensor{}
	for _, path := range files {
		if err := header(path, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// header adds the tensors of a file.
func header(path string, all map[string]Tensor) error {
	f, err := regular.Open(path)
	if err != nil {
		return fault.Wrap(fault.BadModel, regular.Cause(err), again, "cannot read %s", path)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var length [8]byte
	if _, err := io.ReadFull(f, length[:]); err != nil {
		return bad(path, "not a safetensors file: %d bytes", info.Size())
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > info.Size()-8 {
		return bad(path, "truncated or not a safetensors file: a header of %d bytes in a file of %d", n, info.Size())
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(f, text); err != nil {
		return bad(path, "cannot read the header: %v", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return bad(path, "damaged header: %v", err)
	}
	for name, raw := range fields {
		if name == "__metadata__" {
			continue
		}
		t, err := tensor(name, raw, path, 8+int64(n), info.Size())
		if err != nil {
			return err
		}
		if _, twice := all[name]; twice {
			return bad(path, "tensor %s is in two files", name)
		}
		all[name] = t
	}
	return nil
}

// tensor checks a description of a tensor in a file of a size, whose data begins at a position.
func tensor(name string, raw json.RawMessage, path string, begin, size int64) (t Tensor, err error) {
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil {
		return t, bad(path, "tensor %s has an invalid description", name)
	}
	t = Tensor{Name: name, DType: e.DType, Shape: e.Shape, Bytes: e.Offsets[1] - e.Offsets[0], Path: path,
		At: begin + e.Offsets[0]}
	values, fits := int64(1), true
	for _, d := range e.Shape {
		fits = fits && d >= 0 && (d == 0 || values <= (1<<50)/d)
		if fits {
			values *= d
		}
	}
	width, known := Sizes[e.DType]
	if e.Offsets[0] < 0 || t.Bytes < 0 || e.Offsets[1] > size-begin || !fits || known && t.Bytes != values*width {
		return t, bad(path, "tensor %s of %s %v at %v does not fit into the file of %d bytes", name, e.DType, e.Shape,
			e.Offsets, size)
	}
	return t, nil
}

const again = "download it again"

func bad(path, format string, args ...any) error {
	return fault.New(fault.BadModel, again, "%s: %s", path, fmt.Sprintf(format, args...))
}

// Weights is a tensor to write: Data calls write for one piece after another.
type Weights struct {
	Name  string
	DType string
	Shape []int64
	Data  func(write func([]byte) error) error
}

func (w Weights) bytes() int64 {
	n := Sizes[w.DType]
	for _, d := range w.Shape {
		n *= d
	}
	return n
}

// Write writes a file. The same input gives the same bytes.
func Write(out io.Writer, tensors []Weights) error {
	header, at := []byte(`{"__metadata__":{"format":"pt"}`), int64(0)
	for _, t := range tensors {
		name, err := json.Marshal(t.Name)
		if err != nil {
			return err
		}
		e, err := json.Marshal(entry{t.DType, t.Shape, [2]int64{at, at + t.bytes()}})
		if err != nil {
			return err
		}
		header = fmt.Appendf(header, ",%s:%s", name, e)
		at += t.bytes()
	}
	header = append(header, '}')
	header = append(header, bytes.Repeat([]byte(" "), (8-len(header)%8)%8)...) // the data is aligned
	if _, err := out.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)); err != nil {
		return err
	}
	for _, t := range tensors {
		n := int64(0)
		if err := t.Data(func(b []byte) error {
			n += int64(len(b))
			_, err := out.Write(b)
			return err
		}); err != nil {
			return err
		}
		if n != t.bytes() {
			return fmt.Errorf("tensor %s of %s %v has %d bytes, want %d", t.Name, t.DType, t.Shape, n, t.bytes())
		}
	}
	return nil
}
