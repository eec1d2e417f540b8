// Package catalogue has WebLLM's list of models and a store of fetched models. A stored model is a folder with weights,
// tokenizer, configuration and MLC's model library.
//
// A model comes from the public URL in its entry, or from a mirror with the same paths. Weights are checked against the
// package's own list. Whether a mirror has the same model as the public URL cannot be checked, so a stored model names
// its source.
package catalogue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
)

// Catalogue is the list of models in a version of WebLLM.
type Catalogue struct {
	WebLLM string  `json:"webllm"` // version
	Models []Entry `json:"models"`
}

// Entry is a model. Its fields, and their names in JSON, are WebLLM's.
type Entry struct {
	Model    string    `json:"model"` // URL of the package, without resolve/main
	ID       string    `json:"model_id"`
	Library  string    `json:"model_lib"`                // URL of the .wasm
	Manifest string    `json:"model_manifest,omitempty"` // set only for models that do not generate text
	Type     ModelType `json:"model_type,omitempty"`
	VRAM     float64   `json:"vram_required_MB"` // stated by WebLLM
	// the adapter's maxStorageBufferBindingSize; 0: not stated
	Buffer int64 `json:"buffer_size_required_bytes,omitzero"`
	LowEnd bool  `json:"low_resource_required,omitempty"`
	// of the adapter; most entries omit shader-f16, see Needs
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
	if names := []string{"chat", "embedding", "vision"}; t >= Chat && t <= Vision {
		return names[t]
	}
	return fmt.Sprintf("type %d", int(t))
}

// Writes reports whether the model generates text, from text alone.
func (e Entry) Writes() bool { return e.Type == Chat && e.Manifest == "" }

// ShaderF16 is the WebGPU feature for computing with 16-bit floats.
const ShaderF16 = "shader-f16"

// half matches ids of models that compute with 16-bit floats, such as q4f16_1. Most entries show it only there.
var half = regexp.MustCompile(`(^|[-_])q\d+f16([-_]|$)`)

// Needs reports whether the model needs a feature of the adapter.
func (e Entry) Needs(feature string) bool {
	return slices.Contains(e.Features, feature) ||
		feature == ShaderF16 && (half.MatchString(e.ID) || half.MatchString(path.Base(e.Library)))
}

// Context returns the context window that WebLLM sets for the model; 0: the package's own; -1: a sliding window.
func (e Entry) Context() int {
	n, _ := e.Overrides["context_window_size"].(float64)
	return int(n)
}

// Find returns the model with an id, or a fault that suggests similar ones.
func (c Catalogue) Find(id string) (Entry, error) {
	i := slices.IndexFunc(c.Models, func(e Entry) bool { return e.ID == id })
	if meant := nearest.Question(short(id), builtIn); i < 0 && meant != "" &&
		slices.Contains(builtIn, nearest.Of(short(id), append(c.IDs(), builtIn...), 1)[0]) {
		return Entry{}, fault.New(fault.UnknownModel, meant, "there is no model %q", id)
	}
	if i < 0 {
		return Entry{}, c.Unknown("model %q is not in WebLLM's catalogue", id)
	}
	return c.Models[i], nil
}

// builtIn are models whose names look like those of a catalogue, and are in none.
var builtIn = []string{"tiny", "tiny-q4_0", "tiny-q8_0", "smollm2"}

// short limits a name that somebody typed.
func short(id string) string { return id[:min(len(id), 200)] }

// IDs returns the ids of all models.
func (c Catalogue) IDs() []string {
	ids := make([]string, len(c.Models))
	for i, e := range c.Models {
		ids[i] = e.ID
	}
	return ids
}

// Unknown returns the fault for an unknown id. format has a verb for the id.
func (c Catalogue) Unknown(format, id string) error {
	offer := nearest.Of(short(id), c.IDs(), 3)
	return fault.New(fault.UnknownModel, "the nearest are "+strings.Join(offer, ", ")+"; llmparity model list has all",
		format, id)
}

// Parse reads the embedded catalogue. A test checks its ids and URLs.
func Parse(text []byte) (Catalogue, error) {
	var c Catalogue
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("reading WebLLM's catalogue: %w", err)
	}
	return c, nil
}

// Listed is a model of a catalogue and its state in a store.
type Listed struct {
	ID string `json:"id"`
	// WeightsB is the size of all shards; absent: unknown.
	WeightsB *int64   `json:"weights_bytes,omitempty"`
	VRAMMB   float64  `json:"vram_mb"` // stated by WebLLM
	F16      bool     `json:"needs_shader_f16"`
	Features []string `json:"required_features,omitempty"`
	Type     string   `json:"type"`
	Context  int      `json:"context,omitempty"`
	Stored   bool     `json:"stored"`
	StoredB  int64    `json:"stored_bytes,omitempty"` // all files
	// the mirror of a stored model; absent: the public URLs
	Source  string `json:"source,omitempty"`
	Model   string `json:"model"`
	Library string `json:"library"`
}

// List returns the models whose ids contain filter, sorted. If the mirror cannot be reached, it calls warn once.
func (c Catalogue) List(ctx context.Context, filter, mirror, store string, warn func(string)) ([]Listed, error) {
	entries := slices.DeleteFunc(slices.Clone(c.Models), func(e Entry) bool {
		return !strings.Contains(strings.ToLower(e.ID), strings.ToLower(filter))
	})
	if len(entries) == 0 {
		return nil, c.Unknown("no model in WebLLM's catalogue has %q in its id", filter)
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.ID), strings.ToLower(b.ID)), strings.Compare(a.ID, b.ID))
	})
	var sizes map[string]int64
	if mirror != "" {
		var err error
		if sizes, err = Sizes(ctx, entries, FetchOptions{Mirror: mirror}); err != nil {
			if ctx.Err() != nil || fault.Of(err) == fault.Usage {
				return nil, err
			}
			warn(fault.OneLine(err.Error()))
		}
	}
	out := make([]Listed, len(entries))
	for i, e := range entries {
		out[i] = Listed{ID: e.ID, VRAMMB: e.VRAM, F16: e.Needs(ShaderF16), Features: e.Features,
			Type:    e.Type.String(),
			Context: max(e.Context(), 0), Model: e.Model, Library: e.Library}
		p, err := Open(store, e.ID)
		switch {
		case err == nil:
			all, weights := p.Bytes()
			out[i].WeightsB, out[i].Stored, out[i].StoredB, out[i].Source = &weights, true, all, p.Source
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fault.Wrap(fault.Unwritable, err, "make it readable, or set another cache folder with "+
				cache.Variable,
				"cannot read the store of models")
		}
		if n, ok := sizes[e.ID]; ok {
			out[i].WeightsB = &n
		}
	}
	return out, nil
}

// plainName matches the names of files and folders that are neither paths nor hidden.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,199}$`)
