package catalogue

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"llmparity/internal/cache"
	"llmparity/internal/fault"
)

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
		if sizes, err = Sizes(ctx, entries, Options{Mirror: mirror}); err != nil {
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
