package mlc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/modellib"
)

// Library is what a compiled model library says of itself.
type Library struct {
	Metadata
	File    string
	Bytes   int64
	Imports []string // the functions that it wants from whoever runs it
}

// Metadata is the text that a library's function _metadata gives, as far as it is of use here.
type Metadata struct {
	ModelType         string `json:"model_type"`
	Quantization      string `json:"quantization"`
	ContextWindowSize int    `json:"context_window_size"`
	SlidingWindowSize int    `json:"sliding_window_size"`
	PrefillChunkSize  int    `json:"prefill_chunk_size"`
	// KVCache is nil where a library doesn't say: older ones of MLC's don't.
	KVCache     *KVShape         `json:"kv_cache"`
	Params      []Param          `json:"params"`
	MemoryUsage map[string]int64 `json:"memory_usage"` // bytes by function
	// Own is set in libraries of this project alone.
	Own *Own `json:"llmparity"`
}

// KVShape is what a KV cache is made for.
type KVShape struct {
	Layers  int `json:"num_hidden_layers"`
	Heads   int `json:"num_attention_heads"`
	KVHeads int `json:"num_key_value_heads"`
	HeadDim int `json:"head_dim"`
}

// Own is what a library of this project says beyond what MLC's do: for what it was compiled.
type Own struct {
	modellib.Variant
	Shape *modellib.Shape `json:"shape"` // nil where an earlier version compiled it
}

// Param is a weight that a library wants, or a package has.
type Param struct {
	Name  string `json:"name"`
	Shape Dims   `json:"shape"`
	DType string `json:"dtype"`
}

// Dims are a weight's. A library may leave one open, by naming it instead: AnyDim.
type Dims []int64

// AnyDim stands for a size that a library takes as it comes.
const AnyDim = -1

// UnmarshalJSON takes numbers and names.
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
			if v < 0 || v > 1<<40 || v != math.Trunc(v) {
				return fmt.Errorf("a weight's size of %g", v)
			}
			*d = append(*d, int64(v))
		default:
			return fmt.Errorf("a weight's size that is no number")
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

// takes tells whether a weight of these sizes is one that d wants.
func (d Dims) takes(have Dims) bool {
	return slices.EqualFunc(d, have, func(want, n int64) bool { return want == AnyDim || want == n })
}

func (p Param) String() string { return fmt.Sprintf("%s %s", p.DType, p.Shape) }

// OwnImports are the functions that a library compiled here wants from WebLLM's half of TVM's runtime.
func OwnImports() []string { return []string{"TVMFFIWasmSafeCall", "TVMFFIWasmFunctionDeleter"} }

const (
	maxLibrary  = 512 << 20 // far above any library there is: they have some MB
	maxMetadata = 16 << 20
	// marker is a key that every library's metadata has and that hardly anything else in a library does.
	marker = `"model_type"`
)

// OpenLibrary reads what a model library says of itself, without running it.
func OpenLibrary(path string) (Library, error) {
	const do = "name a model library for WebLLM: a .wasm of MLC's, or one that llmparity model convert wrote"
	switch info, err := os.Stat(path); {
	case err != nil:
		return Library{}, fault.Wrap(fault.BadLibrary, err, "", "the model library can't be read")
	case !info.Mode().IsRegular() || info.Size() > maxLibrary:
		return Library{}, fault.New(fault.BadLibrary, do, "%s is no model library", path)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return Library{}, fault.Wrap(fault.BadLibrary, err, "", "the model library can't be read")
	}
	lib, err := parseLibrary(file)
	if err != nil {
		return Library{}, fault.Wrap(fault.BadLibrary, err, do, "%s is no model library", path)
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
		return Library{}, errors.New("no metadata of a model is in it")
	}
	return Library{Metadata: found, Bytes: int64(len(file)), Imports: imports}, nil
}

// metadataIn finds the metadata's text among a library's bytes: an object that has the marker among its own keys. Of
// the places from which it may begin, the nearest ones before a marker are tried, so that no bytes whatever cost much.
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

// Params lists the weights that a package of the model at f has, made with these options.
func Params(f *gguf.File, options Options) ([]Param, error) {
	arch, err := f.Architecture()
	if err != nil {
		return nil, err
	}
	shape, err := Shape(f, options)
	if err != nil {
		return nil, err
	}
	var list []Param
	for _, p := range params(arch) {
		list = append(list, Param{p.name, p.shape, shape.DType})
	}
	return list, nil
}
