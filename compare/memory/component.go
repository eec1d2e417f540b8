package memory

import (
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Components lists what a breakdown and a prediction are told by, in order.
func Components() []*figure.Row { return figure.Rows(func(r *figure.Row) bool { return r.Component }) }

// IsComponent tells the names of such.
func IsComponent(name string) bool {
	r := figure.Of(name)
	return r != nil && r.Component
}

// Levels of confidence.
const (
	HighConfidence   = "high"
	MediumConfidence = "medium"
	LowConfidence    = "low"
)

// Component is a part of the memory that a cell takes, one value a launch.
type Component struct {
	evidence.Figure
	Confidence string `json:"confidence,omitempty"` // empty where there is no value
	DType      string `json:"dtype,omitempty"`
	// Words explain a value that a reader will not expect, such as one below zero.
	Words string `json:"words,omitempty"`
}

// confidenceOf is the rule, by method and component: what was asked for to the byte, or is told by who asked for it, is
// high; so are readings of processes by PSS. Arithmetic and a server's own statistics are medium, and so are working
// memory, because other things lie in the same buffers, and the used part of a KV cache, because it is tokens times
// their size. Differences gather the errors of all the rest: low, as are sums of RSS, which count shared pages more
// than once.
func confidenceOf(component, method string) string {
	level := map[string]string{figure.Ledger: HighConfidence, evidence.EngineLog: HighConfidence,
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

func worseOf(a, b string) string {
	order := []string{HighConfidence, MediumConfidence, LowConfidence}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// read tells whether a component's value comes of a reading or of the engine's own word: arithmetic proves no
// prediction.
func (c Component) read() bool { return c.Known() && !c.Arithmetic() }

// Parts is where a cell's memory goes, by component. Weights, KV cache (reserved), activations, multi-GPU overhead and
// framework overhead come to the increase from baseline to peak in every launch, because framework overhead is what is
// left of it; what was held at the baseline comes to the total with that. Where a GPU computes they are more by what of
// the parts lies in the host's memory, which a note tells.
type Parts struct {
	Of         string      `json:"of"` // what the whole is: total PSS, RSS sum, GPU memory
	Components []Component `json:"components"`
	Confidence string      `json:"confidence"` // the lowest of weights, KV cache and activations
	DTypes     DTypes      `json:"dtypes"`
	Notes      []string    `json:"notes"`
	// Beyond is of what FrameworkOverhead is made in a browser: its sum BrowserShare, the parts of that, and what is
	// left, EverythingElse.
	Beyond []Component `json:"beyond,omitempty"`
}

// Shown is Component, but for what a reader takes "everything else" for: that is less where a browser's own parts are
// known.
func (p *Parts) Shown(name string) Component {
	if name == figure.FrameworkOverhead && p != nil && len(p.Beyond) > 0 {
		name = figure.EverythingElse
	}
	return p.Component(name)
}

// Component finds one; an empty one that says so where there is none.
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
