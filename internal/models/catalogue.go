package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/record"
)

// Fetch is something to download.
type Fetch struct {
	What  string `json:"what"`
	Bytes *int64 `json:"bytes,omitempty"` // absent: unknown without a request
}

// entry finds a model in the catalogue.
func (f Finder) entry(id string) (catalogue.Entry, error) {
	known, err := f.Catalogue()
	if err != nil {
		return catalogue.Entry{}, err
	}
	return known.Find(id)
}

// chat finds a model that can be run.
func (f Finder) chat(id string) (catalogue.Entry, error) {
	e, err := f.entry(id)
	if err == nil && !e.Writes() {
		err = fault.New(fault.UnknownModel, "choose another (llmparity model list)",
			"model %s (%s) does not generate text", id, e.Type)
	}
	return e, err
}

func store() string { return catalogue.Store(cache.Dir(os.Getenv)) }

// catalogued returns a model of the catalogue, downloading it unless it is in the store.
func (f Finder) catalogued(ctx context.Context, id string, window int) (Model, error) {
	e, err := f.chat(id)
	if err != nil {
		return Model{}, err
	}
	o := catalogue.FetchOptions{Store: store(), Mirror: f.Mirror}
	if e.Needs(catalogue.ShaderF16) {
		if o.Features, err = f.Features(ctx); err != nil {
			return Model{}, err
		}
	}
	p, err := catalogue.Fetch(ctx, e, o, f.Say)
	if err != nil {
		return Model{}, err
	}
	return OpenPackage(p.Dir, e.ID, cmp.Or(window, max(e.Context(), 0)))
}

// Look is Find without downloads. A model of the catalogue that is not in the store has no path; Fetch describes the
// download.
func (f Finder) Look(ctx context.Context, name string, window int) (Model, *Fetch, error) {
	if !Listed(name) {
		m, err := f.Find(ctx, name, window)
		return m, nil, err
	}
	e, err := f.entry(name)
	if err != nil {
		return Model{}, nil, err
	}
	window = cmp.Or(window, max(e.Context(), 0))
	p, err := catalogue.Open(store(), e.ID)
	switch {
	case err == nil:
		m, err := OpenPackage(p.Dir, e.ID, window)
		return m, nil, err
	case !errors.Is(err, fs.ErrNotExist):
		return Model{}, nil, err
	}
	fetch := &Fetch{What: name + " of WebLLM's catalogue"}
	if f.Mirror == "" {
		fetch.What += fmt.Sprintf(" (needs %.0f MiB of GPU memory, says WebLLM)", e.VRAM)
	} else if sizes, err := catalogue.Sizes(ctx, []catalogue.Entry{e},
		catalogue.FetchOptions{Mirror: f.Mirror}); err == nil {
		if n, ok := sizes[e.ID]; ok {
			fetch.Bytes = &n
		}
	}
	return Model{Model: record.Model{Name: e.ID, Format: OfCatalogue, Context: window}}, fetch, nil
}

// Estimated describes a model of the catalogue for an estimate, from the best source: its lists at the mirror, or its
// package in the store; else the catalogue's statement. Without a mirror it stays offline.
// The window is the context that a run uses; 0: the package's own.
func (f Finder) Estimated(ctx context.Context, id string) (m modelsize.Model, window int, err error) {
	e, err := f.chat(id)
	if err != nil {
		return m, 0, err
	}
	m, from, err := f.lists(ctx, e)
	if errors.Is(err, fs.ErrNotExist) {
		from, err = "WebLLM's catalogue, because the package is not here (--mirror names a source of its sizes)", nil
		stated := modelsize.Stated{By: "WebLLM's catalogue", Bytes: int64(e.VRAM * record.MiB),
			Context: max(e.Context(), 0), Buffer: e.Buffer, F16: e.Needs(catalogue.ShaderF16)}
		of, known := f.Published(id)
		if known {
			stated.PerToken = 4 * hfconfig.KVValues(of.Caches)
			if stated.F16 {
				stated.PerToken /= 2
			}
		}
		m = modelsize.FromStatement(e.ID, stated)
		m.MaxContext = of.MaxContext
	}
	if err != nil {
		return m, 0, err
	}
	notes := []string{"sizes from " + from}
	if e.LowEnd {
		notes = append(notes, "WebLLM lists it among the models for devices with little memory")
	}
	m.Notes = append(notes, m.Notes...)
	return m, max(e.Context(), 0), nil
}

// Published describes the model that a package of the catalogue was made from; ok is false if its shape is unknown.
func (f Finder) Published(id string) (m modelsize.Model, ok bool) {
	e, err := f.chat(id)
	if err != nil || e.Shape() == nil {
		return m, false
	}
	c, err := hfconfig.Parse(id, e.Shape())
	m = modelsize.FromConfig(c)
	m.Name = id
	return m, err == nil
}

// lists reads a package's own lists; fs.ErrNotExist if there are none.
func (f Finder) lists(ctx context.Context, e catalogue.Entry) (m modelsize.Model, from string, err error) {
	if f.Mirror == "" {
		p, err := catalogue.Open(store(), e.ID)
		if err == nil {
			m, err = modelsize.FromPackage(p.Dir)
		}
		return m, "the package in the store", err
	}
	config, weights, err := catalogue.Published(ctx, e, catalogue.FetchOptions{Mirror: f.Mirror})
	if err == nil {
		m, err = modelsize.FromLists(e.ID, config, weights)
	}
	return m, "the package's lists at " + f.Mirror, err
}
