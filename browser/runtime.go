package browser

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Runtime is an engine of a page, as its package adds it to this one. It lasts as long as a session.
type Runtime interface {
	// Page returns the engine's part of the page. It is called once.
	Page() Served
	// Offer makes a model ready to be loaded, on the adapter that the page has.
	Offer(context.Context, models.Model, record.Device) (*Offer, error)
	// Close releases what Page and Offer opened.
	Close() error
}

// Served is the engine's part of a page.
type Served struct {
	Site
	// Scripts are the engine's own, which its Site serves below /engine/. Their hash is recorded with the page's.
	Scripts fs.FS
	// Info is what identifies the engine. The browser and the page are added.
	Info record.EngineInfo
	// Stages of a load, in order. Each begins when the script marks it, and ends where the next one begins.
	Stages []Stage
	// InPlace: it writes files of its store in place, so that an interrupted download leaves the beginning of one.
	InPlace bool
	// OnCPU: it computes in WebAssembly whatever the adapter is, so no GPU is looked for.
	OnCPU bool
}

// Stage is a stage of a load: its name, as the script marks it, and how its limits are measured.
type Stage struct{ Name, How string }

// Offer is a model that is ready to be loaded.
type Offer struct {
	Options any    // of the script's load, as JSON
	Context int    // tokens
	Layout  Layout // splits the ledger; nil: it is not split
	Library *record.Library
	Policy  map[string]string // settings of the engine with this model
	Weights record.Sameness   // how those that it converted compare with the file's; empty: it converted none
	// Backend is what the plan asks the engine to compute with, WebGPU or WASM; empty: what it likes. What it does is
	// seen from outside, when it has generated.
	Backend string
	// Threads is how many the plan asks for; 0: what the engine likes. The engine's Got says how many there are.
	Threads int
	// Got is what else was asked for, and what the model has. What only a load shows goes to Page.Got.
	Got []ran.Row
	// Warnings apply to a launch once the model is loaded.
	Warnings []record.Warning
	// Lacks adds to an error of the load which files the page requested in vain; nil: it never does.
	Lacks func() string
	// Ran reads what the script's ran returned after the load; nil: nothing is asked.
	Ran func(p *Page, told json.RawMessage) (*Ran, error)
}

// Ran is what is known of a model only once it is loaded.
type Ran struct {
	Device  *record.Device // with what was asked for; nil: the page's adapter
	Policy  map[string]string
	Layers  *record.Layers
	Sources []sample.Source // until the unload
	// Ledger: WebGPU was used, so that the ledger's figures have a meaning. Without Site.Elsewhere they always have.
	Ledger bool
}

// Caps are those of engines in a browser: the caller adds its own.
func (c Config) Caps() engine.Caps {
	isolation := record.OfLaunch
	if c.Launch.Running() {
		isolation = record.OfTab
	}
	return engine.Caps{IgnoreEOS: true, Resident: true, TokenIDs: true, Exact: true, Requests: 1, Isolation: isolation}
}

// AdapterOf starts a browser to ask for its WebGPU adapter.
func AdapterOf(ctx context.Context, c Config, r Runtime) (record.Device, error) {
	p, err := Open(ctx, c, r.Page().Site, engine.Unmeasured{})
	if err != nil {
		return record.Device{}, errors.Join(err, r.Close())
	}
	d, err := p.Device(ctx)
	return d, errors.Join(err, p.Close(), r.Close())
}

// spans converts the script's marks to spans.
func (s Served) spans(marks map[string]float64, p *Page) []record.Span {
	var spans []record.Span
	for _, stage := range s.Stages {
		begin, ok := marks[stage.Name]
		if !ok {
			continue
		}
		if n := len(spans); n > 0 {
			spans[n-1].End = p.At(begin)
		}
		spans = append(spans, record.Span{Name: stage.Name, Begin: p.At(begin), End: p.At(marks["end"]),
			How: stage.How})
	}
	return spans
}
