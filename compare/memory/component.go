package memory

import (
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Components lists the components of breakdowns and predictions.
func Components() []*figure.Row { return figure.Rows(func(r *figure.Row) bool { return r.Component }) }

// IsComponent tells whether a figure is a component.
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

// Component is a part of a cell's memory, one value a launch.
type Component struct {
	evidence.Figure
	Confidence string `json:"confidence,omitempty"` // empty without a value
	DType      string `json:"dtype,omitempty"`
	// Words explain an unexpected value, such as a negative one.
	Words string `json:"words,omitempty"`
}

// confidenceOf depends on method and component. Allocations known to the byte and PSS are high. Arithmetic and a
// server's own statistics are medium; so are working memory, whose buffers hold other things too, and the filled part
// of a KV cache, which is tokens times their size. Differences are low, because they carry the errors of all others,
// and so are sums of RSS, which count shared pages more than once.
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

// read tells whether a component was measured or reported. Arithmetic cannot confirm a prediction.
func (c Component) read() bool { return c.Known() && !c.Arithmetic() }

// Parts is a cell's memory by component. Weights, KV cache (reserved), activations, multi-GPU overhead and framework
// overhead add up to the increase from baseline to peak in every launch, because framework overhead is the rest of it.
// On a GPU their sum is larger by the parts that are in host memory; a note says so.
type Parts struct {
	Of         string      `json:"of"` // what the whole is: total PSS, RSS sum, GPU memory
	Components []Component `json:"components"`
	Confidence string      `json:"confidence"` // the lowest of weights, KV cache and activations
	DTypes     DTypes      `json:"dtypes"`
	Notes      []string    `json:"notes"`
	// Beyond splits FrameworkOverhead in a browser: the sum BrowserShare, its parts, and the rest, EverythingElse.
	Beyond []Component `json:"beyond,omitempty"`
}

// Shown is Component, except that "everything else" leaves out a browser's own parts if they are known.
func (p *Parts) Shown(name string) Component {
	if name == figure.FrameworkOverhead && p != nil && len(p.Beyond) > 0 {
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
