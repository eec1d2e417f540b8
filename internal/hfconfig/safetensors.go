package hfconfig

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Stored is a tensor in a safetensors file, as its header says.
type Stored struct {
	Name  string
	DType string // F32, BF16, I32, F8_E4M3 …
	Shape []int64
	Bytes int64
}

// Values counts what is in it.
func (s Stored) Values() int64 {
	n, ok := product(s.Shape...)
	if !ok {
		return 0
	}
	return n
}

const (
	maxHeader  = 100 << 20 // the format's own limit
	maxTensors = 1 << 20
)

// Safetensors lists the tensors of the .safetensors files in a folder, or of one such file, by their headers alone.
// There may be none. Of a folder that has the same weights twice, as consolidated.safetensors and as model.safetensors,
// those that transformers takes count.
func Safetensors(path string) ([]Stored, error) {
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.safetensors")); err != nil {
			return nil, bad(path, "", "%v", err)
		}
		if files, err = taken(path, files); err != nil {
			return nil, err
		}
	}
	slices.Sort(files)
	var all []Stored
	for _, file := range files {
		list, err := readHeader(file)
		if err != nil {
			return nil, err
		}
		if all = append(all, list...); len(all) > maxTensors {
			return nil, bad(path, "", "more than %d tensors", maxTensors)
		}
	}
	return all, nil
}

// taken are of a folder's files those that the index lists, or else those that are called model, or else all.
func taken(dir string, files []string) ([]string, error) {
	listed, err := indexed(dir)
	if err != nil {
		return nil, err
	}
	for _, is := range []func(name string) bool{
		func(name string) bool { return listed[name] },
		func(name string) bool { return strings.HasPrefix(name, "model") },
	} {
		var some []string
		for _, file := range files {
			if is(filepath.Base(file)) {
				some = append(some, file)
			}
		}
		if len(some) > 0 {
			return some, nil
		}
	}
	return files, nil
}

// indexed is the set of files that the index names; nil where there is none.
func indexed(dir string) (map[string]bool, error) {
	r, err := index(dir)
	if r == nil || err != nil {
		return nil, err
	}
	weights := r.sub("weight_map")
	set := map[string]bool{}
	for _, raw := range weights.fields {
		var name string
		if json.Unmarshal(raw, &name) == nil {
			set[name] = true
		}
	}
	return set, weights.err
}

// index reads the index of a model's safetensors files; nil where there is none.
func index(dir string) (*reader, error) {
	file := filepath.Join(dir, "model.safetensors.index.json")
	if _, err := os.Stat(file); err != nil {
		return nil, nil
	}
	text, err := readFile(file, maxHeader)
	if err != nil {
		return nil, err
	}
	return newReader(file, text)
}

const again = "fetch it again"

func readHeader(file string) ([]Stored, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, unreadable(file, err)
	}
	if !info.Mode().IsRegular() {
		return nil, bad(file, again, "it is no regular file")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, unreadable(file, err)
	}
	defer f.Close()
	return parseHeader(file, f, info.Size())
}

// parseHeader reads the length, and so much text behind it, which names each tensor with its type, its sizes and where
// it lies.
func parseHeader(file string, r io.Reader, size int64) ([]Stored, error) {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, bad(file, again, "it is no safetensors file: it has %d bytes", size)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, bad(file, again, "it is no safetensors file, or not whole: a header of %d bytes in a file of %d", n,
			size)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, bad(file, again, "its header can't be read: %v", err)
	}
	fields, err := object(text)
	if err != nil {
		return nil, bad(file, again, "its header is damaged: %v", err)
	}
	var list []Stored
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
			return nil, bad(file, again, "tensor %s: its description is %s", name, brief(raw))
		}
		s := Stored{Name: name, DType: t.DType, Shape: t.Shape, Bytes: t.Offsets[1] - t.Offsets[0]}
		_, fits := product(t.Shape...)
		if t.Offsets[0] < 0 || s.Bytes < 0 || t.Offsets[1] > size-8-int64(n) || !fits {
			return nil, bad(file, again, "tensor %s of %s %v lies at %v, in a file of %d bytes", name, t.DType, t.Shape,
				t.Offsets, size)
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Stored) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// inLayers are the names under which keys and values are projected, by most families.
var inLayers = regexp.MustCompile(`(?:^|\.)(?:layers|h|blocks)\.(\d+)\.(?:self_attn|attn|attention|self_attention)\.(k_proj|v_proj)\.weight$`)

// CachesOf works out from the tensors alone what a token takes in a KV cache: the rows of the projections of keys and
// values. It is nil where the names are others, or the tensors are packed.
func CachesOf(tensors []Stored) []Cache {
	type kv struct{ keys, values int64 }
	layers := map[int]kv{}
	for _, t := range tensors {
		m := inLayers.FindStringSubmatch(t.Name)
		if m == nil || len(t.Shape) != 2 || !strings.HasPrefix(strings.ToUpper(t.DType), "F") &&
			!strings.HasPrefix(t.DType, "BF") {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			continue
		}
		l := layers[n]
		if m[2] == "k_proj" {
			l.keys = t.Shape[0]
		} else {
			l.values = t.Shape[0]
		}
		layers[n] = l
	}
	groups := map[kv]int{}
	for _, l := range layers {
		if l.keys == 0 || l.values == 0 {
			return nil
		}
		groups[l]++
	}
	var caches []Cache
	for l, n := range groups {
		caches = append(caches, Cache{Layers: n, Values: l.keys + l.values, Keys: l.keys})
	}
	slices.SortFunc(caches, func(a, b Cache) int { return int(b.Values - a.Values) })
	return caches
}

// IndexTotal is the total_size that the index of a model's safetensors files says, in bytes; 0 where there is none.
func IndexTotal(dir string) (int64, error) {
	r, err := index(dir)
	if r == nil || err != nil {
		return 0, err
	}
	meta := r.sub("metadata")
	raw, ok := meta.get("total_size")
	if !ok {
		return 0, meta.err
	}
	var total float64
	if json.Unmarshal(raw, &total) != nil || total <= 0 || total > 1<<50 {
		return 0, bad(r.file, again, "metadata.total_size is %s", brief(raw))
	}
	return int64(total), nil
}
