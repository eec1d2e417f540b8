package models

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/gguf"
	"llmparity/internal/record"
)

// Difference returns in what the weights of two models first differ, compared value by value; empty: in nothing. Files
// are compared once, by their hashes; the cache has the results. It is an error if they cannot be compared.
func (f Finder) Difference(ctx context.Context, a, b Model) (string, error) {
	if a.SHA256 == b.SHA256 && a.SHA256 != "" {
		return "", nil
	}
	for _, m := range []Model{a, b} {
		if m.Path == "" || m.SHA256 == "" || m.Format == record.Served {
			return "", fmt.Errorf("there is no file of %s", m.Name)
		}
	}
	known := filepath.Join(cache.Dir(os.Getenv), "comparisons", fmt.Sprintf("v1-%.16s-%.16s.json", a.SHA256, b.SHA256))
	var found struct {
		Difference string `json:"difference"` // "": none
	}
	if text, err := os.ReadFile(known); err == nil && json.Unmarshal(text, &found) == nil {
		return found.Difference, nil
	}
	f.Say(fmt.Sprintf("comparing the weights of %s and %s, once", filepath.Base(a.Path), filepath.Base(b.Path)))
	var err error
	if found.Difference, err = difference(ctx, a, b); err != nil {
		return "", err
	}
	// Without the cache, they are compared again the next time.
	if cache.MkdirAll(filepath.Dir(known)) == nil {
		_ = whole.JSON(known, found)
	}
	return found.Difference, nil
}

func difference(ctx context.Context, a, b Model) (string, error) {
	var sides [2][]gguf.Weights
	for i, m := range []Model{a, b} {
		tensors, done, err := tensorsOf(ctx, m)
		if err != nil {
			return "", err
		}
		defer done()
		sides[i] = tensors
	}
	return gguf.Difference(ctx, sides[0], sides[1])
}

// tensorsOf returns the weights of a model as those of a GGUF.
func tensorsOf(ctx context.Context, m Model) (tensors []gguf.Weights, done func(), err error) {
	f := named(m.Format)
	if f.weights == nil {
		return nil, nil, fmt.Errorf("the weights of a %s model cannot be read", m.Format)
	}
	return f.weights(ctx, m)
}

// Compare notes in each model which earlier one has the same weights, or else how they differ from those of the first.
// The models are forms of one.
func (f Finder) Compare(ctx context.Context, forms []*Model) error {
	for i, m := range forms {
		if err := f.compare(ctx, m, forms[:i]); err != nil {
			return err
		}
		if m.GGUF != nil { // converted and proven to be the same
			m.GGUF.SameAs, m.GGUF.Differs = m.Values(), m.Differs
		}
	}
	return nil
}

func (f Finder) compare(ctx context.Context, m *Model, earlier []*Model) error {
	for n, of := range earlier {
		if of.SameAs != "" {
			continue // it is compared with its like
		}
		words, err := f.Difference(ctx, *of, *m)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && words == "":
			if m.SHA256 != of.SHA256 {
				m.SameAs = of.SHA256
			}
			return nil
		case n > 0:
		case err != nil:
			m.Differs = record.Relation{Code: record.NotCompared, Detail: fault.What(err)}
		default:
			m.Differs = record.Relation{Code: record.OtherValues, Detail: words}
		}
	}
	return nil
}
