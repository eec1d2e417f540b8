// Package memory has a cell's memory: totals at the baseline, after warm-up and at the peak; what was read inside the
// engine; memory by component with the rest; and predictions compared with measurements.
//
// It cannot explain memory that no engine reports: such memory is in "everything else", which also carries the errors
// of all other components. It only reads records.
package memory

import (
	"cmp"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/internal/dtype"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Footprint is the memory of a cell.
type Footprint struct {
	evidence.Setup
	Counted   []*record.Attempt
	Figures   []evidence.Figure // those of Figures, and those of requests
	Server    []evidence.Figure // reported by a server
	Breakdown *Breakdown        // nil: nothing was read inside
	Parts     *Parts            // nil: no launch counts
	Shown     Shown             // of the launch that tables and charts with parts are about
	Others    float64           // MiB shared with other programs, if PSS leaves out much of it; 0: none
}

// Of computes a cell's memory. figures and server are summarised.
func Of(s evidence.Setup, counted []*record.Attempt, figures, server []evidence.Figure) *Footprint {
	c := &Footprint{Setup: s, Counted: counted, Figures: figures, Server: server, Breakdown: breakdown(counted),
		Others: others(counted)}
	c.Parts = c.split()
	all := evidence.Launches(counted)
	launch := c.closest(all)
	if c.Parts != nil {
		c.choose(launch)
	}
	c.Shown = c.show(launch)
	return c
}

// Figure finds a figure; an absent one if there is none.
func (c *Footprint) Figure(name string) evidence.Figure { return evidence.Find(c.Figures, name) }

// Warnings are those of the ledger and of shared memory.
func (c *Footprint) Warnings() []record.Warning {
	return append(c.ledgerWarning(), c.sharingWarning()...)
}

// Components lists the components of breakdowns and predictions.
func Components() []*figure.Row { return figure.Rows(func(r *figure.Row) bool { return r.Component }) }

// Levels of confidence.
const (
	HighConfidence   = "high"
	MediumConfidence = "medium"
	LowConfidence    = "low"
)

// Component is a part of a cell's memory, one value a launch.
type Component struct {
	evidence.Figure
	OfLaunch   *float64 `json:"of_launch,omitempty"`  // in the launch whose parts are shown
	Confidence string   `json:"confidence,omitempty"` // empty without a value
	DType      string   `json:"dtype,omitempty"`
	// Words explain an unexpected value, such as a negative one.
	Words string `json:"words,omitempty"`
}

// confidenceOf depends on method and component. Allocations known to the byte and PSS are high. Arithmetic and a
// server's own statistics are medium; so are working memory, whose buffers hold other things too, and the filled part
// of a KV cache, which is tokens times their size. Differences are low, because they carry the errors of all others,
// and so are sums of RSS, which count shared pages more than once.
func confidenceOf(component, method string) string {
	level := map[string]string{figure.Ledger: HighConfidence, evidence.EngineLog: HighConfidence,
		evidence.EngineTensors:   HighConfidence,
		evidence.ByTensors:       HighConfidence,
		record.MethodSmapsRollup: HighConfidence, gpuMethod: HighConfidence, evidence.ByFormula: MediumConfidence,
		evidence.ServerMethod: MediumConfidence}[method]
	switch {
	case level == "":
		return LowConfidence
	case level == HighConfidence && slices.Contains(
		[]string{figure.Activations, figure.KVCacheUsed, figure.PageCopies, figure.GPUProcess, figure.PageHeaps,
			figure.NotYetThere}, component):
		return MediumConfidence
	}
	return level
}

// read reports whether a component was measured or reported. Arithmetic cannot confirm a prediction.
func (c Component) read() bool { return c.Known() && !c.Arithmetic() }

// Parts is a cell's memory by component. Weights, KV cache (reserved), activations, multi-GPU overhead, framework
// overhead and, on a GPU, what is in host memory (below zero) add up to the increase from baseline to peak in every
// launch, because framework overhead is the rest of it.
type Parts struct {
	Of string `json:"of"` // what the whole is: total PSS, RSS sum, GPU memory
	// Launch is the attempt that opened the launch whose parts are shown: the one whose peak is closest to the median.
	// Medians of parts need not add up to the median of the whole.
	Launch     int         `json:"launch,omitempty"`
	Components []Component `json:"components"`
	Confidence string      `json:"confidence"` // the lowest of weights, KV cache and activations
	DTypes     DTypes      `json:"dtypes"`
	Notes      []string    `json:"notes"`
	// Beyond splits FrameworkOverhead in a browser: the sum BrowserShare, its parts, and the rest, EverythingElse.
	Beyond []Component `json:"beyond,omitempty"`
}

// Shown is Component, except that "everything else" leaves out a browser's own parts if they are known.
func (p *Parts) Shown(name string) Component {
	if name == figure.FrameworkOverhead && p.Component(figure.EverythingElse).OfLaunch != nil {
		name = figure.EverythingElse
	}
	return p.Component(name)
}

// Component finds a component; an absent one if there is none.
func (p *Parts) Component(name string) Component {
	if p != nil {
		for _, c := range slices.Concat(p.Components, p.Beyond) {
			if c.Name == name {
				return c
			}
		}
	}
	return Component{Figure: evidence.Figure{Name: name, Title: figure.Title(name), Absent: "not measured"}}
}

// DTypes are those of a cell's components; empty if unknown.
type DTypes struct {
	Weights     string `json:"weights,omitempty"`
	Activations string `json:"activations,omitempty"`
	KVCache     string `json:"kv_cache,omitempty"`
	Scales      string `json:"scales,omitempty"` // of quantised weights
}

// dtypes are those that the engine reports; for weights, else those of the file.
func (c *Footprint) dtypes() DTypes {
	d := DTypes{Weights: cmp.Or(c.Says("weights_dtype"), c.Spec.Model.DType), Activations: c.Says("activations_dtype"),
		KVCache: c.Says("kv_dtype")}
	if d.Activations == "" && c.Breakdown != nil &&
		evidence.Find(c.Breakdown.Load, figure.Workspaces).Method == evidence.EngineLog {
		d.Activations = "f32" // only llama.cpp and engines built on it have such logs, and they compute in f32
	}
	d.Scales = dtype.ScalesOf(strings.ToLower(d.Weights))
	return d
}

// SameDType reports whether two dtypes have the same size. Of unknown ones only the same dtype has.
func SameDType(a, b string) bool {
	x, _ := dtype.Named(a)
	y, _ := dtype.Named(b)
	return dtype.Canonical(a) == dtype.Canonical(b) || x.Width() == y.Width() && x.Width() > 0
}
