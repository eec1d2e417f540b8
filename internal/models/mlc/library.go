package mlc

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/modellib"
)

// Library describes a compiled model library.
type Library struct {
	Metadata
	File    string   `json:"-"`
	Bytes   int64    `json:"bytes"`
	Imports []string `json:"imports"` // functions that the library needs from its host
	// Rope and Norm are the numbers in the shaders of rotation and norms, which the metadata does not state.
	Rope []string `json:"rope"`
	Norm []string `json:"norm"`
}

// Metadata is what a library's function _metadata returns, as far as it is used here.
type Metadata struct {
	ModelType         string `json:"model_type"`
	Quantization      string `json:"quantization"`
	ContextWindowSize int    `json:"context_window_size"`
	SlidingWindowSize int    `json:"sliding_window_size"`
	PrefillChunkSize  int    `json:"prefill_chunk_size"`
	// KVCache is nil in older libraries of MLC.
	KVCache     *KVShape         `json:"kv_cache"`
	Params      []Param          `json:"params"`
	MemoryUsage map[string]int64 `json:"memory_usage"` // bytes by function
	// Own is set only in our own libraries.
	Own *Own `json:"llmparity"`
}

// Usage returns the memory that a library states for all its functions together, and for the one with the most. A file
// can state anything: each counts as 0 to 16 TiB.
func (m Metadata) Usage() (sum, most int64) {
	for _, n := range m.MemoryUsage {
		n = min(max(n, 0), 1<<44)
		sum, most = sum+n, max(most, n)
	}
	return sum, most
}

// KVShape is the shape of a KV cache.
type KVShape struct {
	Layers  int `json:"num_hidden_layers"`
	Heads   int `json:"num_attention_heads"`
	KVHeads int `json:"num_key_value_heads"`
	HeadDim int `json:"head_dim"`
}

// Own is what only our own libraries report.
type Own struct {
	modellib.Variant
	Shape modellib.Shape `json:"shape"`
}

// Param is a weight that a library needs or a package has.
type Param struct {
	Name  string `json:"name"`
	Shape Dims   `json:"shape"`
	DType string `json:"dtype"`
}

// Dims are the dimensions of a weight. A library may leave one variable: AnyDim.
type Dims []int64

// AnyDim is a variable dimension.
const AnyDim = -1

// UnmarshalJSON accepts numbers and names.
func (d *Dims) UnmarshalJSON(text []byte) error {
	var items []any
	if err := json.Unmarshal(text, &items); err != nil {
		return err
	}
	*d = nil
	for _, item := range items {
		switch v := item.(type) {
		case string:
			*d = append(*d, AnyDim)
		case float64:
			if v < AnyDim || v > 1<<40 || v != math.Trunc(v) {
				return fmt.Errorf("a weight has the dimension %g, want a whole number", v)
			}
			*d = append(*d, int64(v))
		default:
			return fmt.Errorf("a weight has a dimension that is neither a number nor a name")
		}
	}
	return nil
}

func (d Dims) String() string {
	words := make([]string, len(d))
	for i, n := range d {
		if words[i] = strconv.FormatInt(n, 10); n == AnyDim {
			words[i] = "any"
		}
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// takes reports whether a weight with these dimensions is acceptable.
func (d Dims) takes(have Dims) bool {
	return slices.EqualFunc(d, have, func(want, n int64) bool { return want == AnyDim || want == n })
}

func (p Param) String() string { return fmt.Sprintf("%s %s", p.DType, p.Shape) }

// OwnImports returns the functions that our own libraries import from WebLLM's runtime.
func OwnImports() []string { return []string{"TVMFFIWasmSafeCall", "TVMFFIWasmFunctionDeleter"} }

const (
	maxLibrary  = 512 << 20 // libraries have a few MiB
	maxMetadata = 16 << 20
	// marker is a key in the metadata of every library, and rare elsewhere.
	marker = `"model_type"`
)

// OpenLibrary reads the metadata of a model library without running it.
func OpenLibrary(path string) (Library, error) {
	const do = "name a model library for WebLLM: a .wasm from MLC or from llmparity model convert"
	file, err := regular.Read(path, maxLibrary)
	if err != nil {
		return Library{}, fault.Wrap(fault.BadLibrary, err, do, "cannot read the model library %s", path)
	}
	lib, err := parseLibrary(file)
	if err != nil {
		return Library{}, fault.Wrap(fault.BadLibrary, err, do, "%s is not a model library", path)
	}
	lib.File = path
	return lib, nil
}

func parseLibrary(file []byte) (Library, error) {
	imports, err := importsOf(file)
	if err != nil {
		return Library{}, err
	}
	found, ok := metadataIn(file)
	if !ok {
		return Library{}, errors.New("it contains no metadata of a model")
	}
	l := Library{Metadata: found, Bytes: int64(len(file)), Imports: imports}
	for _, shader := range bytes.Split(file, []byte("\n// Function: "))[1:] {
		shader, _, _ = bytes.Cut(shader, []byte{0})
		name, _, _ := bytes.Cut(shader, []byte("\n"))
		if bytes.Contains(name, []byte("rope")) {
			l.Rope = appendNumbers(l.Rope, shader)
		} else if bytes.Contains(name, []byte("norm")) {
			l.Norm = appendNumbers(l.Norm, shader)
		}
	}
	return l, nil
}

// literal matches a fraction in a shader, without its type.
var literal = regexp.MustCompile(`\d\.\d+e[+-]\d+`)

// appendNumbers appends the fractions in a shader, each once.
func appendNumbers(to []string, shader []byte) []string {
	for _, n := range literal.FindAllString(string(shader), -1) {
		if !slices.Contains(to, n) {
			to = append(to, n)
		}
	}
	return to
}

// metadataIn finds the metadata in a library: a JSON object with the marker among its keys. To bound the cost, it tries
// only the nearest opening braces before the first markers.
func metadataIn(file []byte) (Metadata, bool) {
	const markers, begins = 8, 8
	for at, n := 0, 0; n < markers; n++ {
		i := bytes.Index(file[at:], []byte(marker))
		if i < 0 {
			break
		}
		at += i + len(marker)
		from := at
		for range begins {
			if from = bytes.LastIndexByte(file[:from], '{'); from < 0 {
				break
			}
			if m, ok := decodeMetadata(file[from:min(len(file), from+maxMetadata)]); ok {
				return m, true
			}
		}
	}
	return Metadata{}, false
}

func decodeMetadata(text []byte) (m Metadata, ok bool) {
	if json.NewDecoder(bytes.NewReader(text)).Decode(&m) != nil || m.ModelType == "" || len(m.Params) == 0 {
		return Metadata{}, false
	}
	return m, !slices.ContainsFunc(m.Params, func(p Param) bool { return p.Name == "" || p.DType == "" })
}

// Params returns the weights that a package of the model would have.
func Params(f *gguf.File, options Options) (list []Param, err error) {
	m, err := describe(f, options)
	if err != nil {
		return nil, err
	}
	for _, t := range m.tensors() {
		list = append(list, Param{t.name, t.shape, t.dtype})
	}
	return list, nil
}

// sectionImport lists what a module needs from its host.
const sectionImport = 2

// wasmMagic starts every module: magic number and version.
const wasmMagic = "\x00asm\x01\x00\x00\x00"

// CheckModule returns an error if a file is not a WebAssembly module.
func CheckModule(file []byte) error {
	if !bytes.HasPrefix(file, []byte(wasmMagic)) {
		return errors.New("not a WebAssembly module")
	}
	return nil
}

// imported matches the import of a function of TVM: the module env, the length of the name, the name, and the kind.
var imported = regexp.MustCompile(`(?s)\x03env.(TVM\w+)\x00`)

// importsOf returns the names of TVM's functions that a module imports, and checks that all sections are complete.
func importsOf(file []byte) (names []string, err error) {
	if err := CheckModule(file); err != nil {
		return nil, err
	}
	for rest := file[len(wasmMagic):]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, errors.New("unexpected end")
		}
		id, body := rest[0], rest[1+n:][:size]
		rest = rest[1+n+int(size):]
		if id != sectionImport {
			continue
		}
		for _, m := range imported.FindAllSubmatch(body, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names, nil
}
