// Package catalogue is WebLLM's list of models, and a store of those that were fetched: each with its weights,
// tokenizer and settings and with the model library of MLC's that goes with them, checked, in a folder that a page can
// be served from.
//
// A model comes from the public address that its entry names, or from a mirror of the same layout. That its weights are
// those that the package's own list promises is checked, and whether that list makes sense; whether a mirror has the
// same models as the public addresses can't be: a stored model says where it came from.
package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"llmparity/internal/fault"
	"llmparity/internal/nearest"
)

// Catalogue is what a version of WebLLM has built in.
type Catalogue struct {
	WebLLM string  `json:"webllm"` // the version
	Models []Entry `json:"models"`
}

// Entry is a model. Its fields, and their names in JSON, are WebLLM's.
type Entry struct {
	Model    string    `json:"model"` // address of the weights, without resolve/main
	ID       string    `json:"model_id"`
	Library  string    `json:"model_lib"`                // address of the .wasm
	Manifest string    `json:"model_manifest,omitempty"` // another file of the package, which WebLLM wants first
	Type     ModelType `json:"model_type,omitempty"`
	VRAM     float64   `json:"vram_required_MB"` // as WebLLM states it
	// the adapter's maxStorageBufferBindingSize; 0: not stated
	Buffer int64 `json:"buffer_size_required_bytes,omitzero"`
	LowEnd bool  `json:"low_resource_required,omitempty"`
	// of the adapter, as far as they are stated: ask Needs
	Features  []string       `json:"required_features,omitempty"`
	Overrides map[string]any `json:"overrides,omitempty"` // of mlc-chat-config.json
}

// ModelType is what a model is for.
type ModelType int

// The types that WebLLM knows.
const (
	Chat ModelType = iota
	Embedding
	Vision
)

func (t ModelType) String() string {
	switch t {
	case Chat:
		return "chat"
	case Embedding:
		return "embedding"
	case Vision:
		return "vision"
	}
	return fmt.Sprintf("type %d", int(t))
}

// ShaderF16 is the feature of a WebGPU adapter that can compute with 16-bit floats.
const ShaderF16 = "shader-f16"

// half is how an id tells that its model computes with 16-bit floats: q4f16_1, q0f16. Most of WebLLM's entries say it
// so alone.
var half = regexp.MustCompile(`(^|[-_])q\d+f16([-_]|$)`)

// Needs tells whether the model needs a feature of the adapter.
func (e Entry) Needs(feature string) bool {
	return slices.Contains(e.Features, feature) ||
		feature == ShaderF16 && (half.MatchString(e.ID) || half.MatchString(path.Base(e.Library)))
}

// Context is the context window that WebLLM gives the model; 0: the package's own; -1: none, the model has a sliding
// one.
func (e Entry) Context() int {
	n, _ := e.Overrides["context_window_size"].(float64)
	return int(n)
}

// Find gives the model with an id, or a fault that offers the nearest ones.
func (c Catalogue) Find(id string) (Entry, error) {
	i := slices.IndexFunc(c.Models, func(e Entry) bool { return e.ID == id })
	if i < 0 {
		return Entry{}, c.Unknown("model %q is not in WebLLM's catalogue", id)
	}
	return c.Models[i], nil
}

// IDs lists the models.
func (c Catalogue) IDs() []string {
	ids := make([]string, len(c.Models))
	for i, e := range c.Models {
		ids[i] = e.ID
	}
	return ids
}

// Unknown is the fault that no model is named id, or like it; format has a place for it.
func (c Catalogue) Unknown(format, id string) error {
	// What nobody types is not what anybody meant.
	const most = 200
	offer := nearest.Of(id[:min(len(id), most)], c.IDs(), 3)
	return fault.New(fault.UnknownModel, "the nearest are "+strings.Join(offer, ", ")+"; llmparity model list has all",
		format, id)
}

// Parse reads a catalogue, strictly.
func Parse(text []byte) (Catalogue, error) {
	var c Catalogue
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Catalogue{}, fmt.Errorf("reading WebLLM's catalogue: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Catalogue{}, errors.New("reading WebLLM's catalogue: text after its end")
	}
	if c.WebLLM == "" || len(c.Models) == 0 {
		return Catalogue{}, errors.New("reading WebLLM's catalogue: no version or no models")
	}
	seen := map[string]bool{}
	for _, e := range c.Models {
		// Ids become folders, which some systems don't tell apart by capitals.
		key := strings.ToLower(e.ID)
		if err := e.validate(); err != nil {
			return Catalogue{}, fmt.Errorf("reading WebLLM's catalogue: model %q: %w", e.ID, err)
		}
		if seen[key] {
			return Catalogue{}, fmt.Errorf("reading WebLLM's catalogue: model %q is there twice", e.ID)
		}
		seen[key] = true
	}
	return c, nil
}

// plainName is a name that is nothing but a file's or folder's: no path, nothing hidden.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,199}$`)

func (e Entry) validate() error {
	if !plainName.MatchString(e.ID) {
		return errors.New("its id is not a valid folder name")
	}
	if e.Manifest != "" && !plainName.MatchString(e.Manifest) {
		return fmt.Errorf("its manifest %q is not a valid file name", e.Manifest)
	}
	for _, address := range []string{e.Model, e.Library} {
		if err := validAddress(address); err != nil {
			return err
		}
	}
	if !strings.HasSuffix(e.Library, ".wasm") {
		return fmt.Errorf("its library %s is not a .wasm file", e.Library)
	}
	if e.VRAM < 0 || math.IsInf(e.VRAM, 0) || e.Buffer < 0 || e.Type < Chat || e.Type > Vision {
		return errors.New("its memory or type is invalid")
	}
	if slices.Contains(e.Features, "") {
		return errors.New("it needs a feature without a name")
	}
	if n, ok := e.Overrides["context_window_size"]; ok {
		if n, ok := n.(float64); !ok || n != math.Trunc(n) || n < -1 || n > math.MaxInt32 {
			return fmt.Errorf("its context window is %v", e.Overrides["context_window_size"])
		}
	}
	return nil
}

// validAddress takes https addresses of a host and a path, which can be put below a mirror.
func validAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("its address: %w", err)
	}
	clean := strings.TrimSuffix(u.Path, "/")
	if u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" ||
		len(clean) < 2 || path.Clean(clean) != clean || strings.ContainsAny(clean, `\:`) ||
		strings.ContainsFunc(clean, unicode.IsControl) {
		return fmt.Errorf("its address %s cannot be downloaded: it must be https with a host and a plain path",
			address)
	}
	return nil
}
