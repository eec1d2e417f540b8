package hfconfig

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/kit/regular"
)

// Stored is what safetensors files hold.
type Stored struct {
	Values int64
	Bytes  map[string]int64 // by dtype: f32, bf16, i32, f8_e4m3 …
}

const maxHeader = 100 << 20 // the format's own limit

// indexed returns the files in a folder's model.safetensors.index.json; none if there is no index.
func indexed(dir string) ([]string, error) {
	file := filepath.Join(dir, "model.safetensors.index.json")
	if _, err := os.Stat(file); err != nil {
		return nil, nil
	}
	text, err := readFile(file, maxHeader)
	if err != nil {
		return nil, err
	}
	var index struct {
		Files map[string]string `json:"weight_map"` // by tensor
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, bad(file, again, "damaged index: %v", err)
	}
	return slices.Compact(slices.Sorted(maps.Values(index.Files))), nil
}

// Safetensors counts the tensors of the .safetensors files in a folder, or of one such file, by their headers. There
// may be none. Of a folder, the files in the index count; without an index, those that transformers would load.
func Safetensors(path string) (Stored, error) {
	files, all := []string{path}, Stored{Bytes: map[string]int64{}}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if files, err = indexed(path); err != nil {
			return all, err
		}
		if len(files) == 0 {
			files = []string{"model*.safetensors"}
		}
		if files = glob(path, files...); len(files) == 0 {
			files = glob(path, "*.safetensors")
		}
	}
	for _, file := range files {
		if err := all.add(file); err != nil {
			return all, err
		}
	}
	return all, nil
}

// glob returns the paths of the files in a folder that match a pattern.
func glob(dir string, patterns ...string) (files []string) {
	for _, p := range patterns {
		names, _ := fs.Glob(os.DirFS(dir), p) // an invalid pattern matches nothing
		for _, name := range names {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return files
}

const again = "download it again"

// add adds the tensors of a file.
func (s *Stored) add(file string) error {
	f, err := regular.Open(file)
	if err != nil {
		return unreadable(file, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return unreadable(file, err)
	}
	return s.parse(file, f, info.Size())
}

// parse reads a header: its length, and JSON with the dtype, shape and position of each tensor.
func (s *Stored) parse(file string, r io.Reader, size int64) error {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return bad(file, again, "not a safetensors file: %d bytes", size)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > size-8 {
		return bad(file, again, "truncated or not a safetensors file: a header of %d bytes in a file of %d", n,
			size)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return bad(file, again, "cannot read the header: %v", err)
	}
	fields, err := object(text)
	if err != nil {
		return bad(file, again, "damaged header: %v", err)
	}
	for name, raw := range fields {
		if name == "__metadata__" {
			continue
		}
		var t struct {
			DType   string   `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return bad(file, again, "tensor %s has the invalid description %s", name, brief(raw))
		}
		values, fits := product(t.Shape...)
		if t.Offsets[0] < 0 || t.Offsets[1] < t.Offsets[0] || t.Offsets[1] > size-8-int64(n) || !fits {
			return bad(file, again, "tensor %s of %s %v at %v does not fit into the file of %d bytes", name, t.DType, t.Shape,
				t.Offsets, size)
		}
		s.Values += values
		s.Bytes[strings.ToLower(t.DType)] += t.Offsets[1] - t.Offsets[0]
	}
	return nil
}
