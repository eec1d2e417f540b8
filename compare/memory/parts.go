package memory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/hardware"
	"llmparity/internal/dtype"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// split finds each component by the best method that the engine allows.
func (c *Footprint) split() *Parts {
	all := evidence.Launches(c.Counted)
	if len(all) == 0 || c.Foreign() {
		return nil
	}
	p := &Parts{Notes: []string{}, DTypes: c.dtypes()}
	whole := c.wholeOf(all)
	whole.increase.Name, whole.increase.Method = figure.MemoryIncrease, whole.method
	whole.total.Name, whole.total.Method = figure.TotalMemory, whole.method
	p.Of = whole.of
	weights, cache, used := c.weights(all), c.cacheReserved(all), c.cacheUsed(all)
	working, several := c.inside(figure.Activations, figure.Workspaces), c.several(all)
	if !working.Known() {
		working.Absent = "not read separately; part of everything else"
	}
	framework := c.remainder(all, whole, weights, cache, working, several)
	for _, f := range []evidence.Figure{weights, cache, used, working, framework, several, hostShare(all, whole),
		whole.increase, whole.total} {
		if f.Name != figure.HostParts || len(f.Values) > 0 {
			p.add(f)
		}
	}
	p.Beyond = c.beyond(all, whole, framework, weights, cache, working)
	order, worst := []string{HighConfidence, MediumConfidence, LowConfidence}, 0
	for _, name := range []string{figure.ModelWeights, figure.KVCache, figure.Activations} {
		worst = max(worst, slices.Index(order, cmp.Or(p.Component(name).Confidence, LowConfidence)))
	}
	p.Confidence = order[worst]
	p.Notes = append(p.Notes, whole.notes...)
	return p
}

// choose sets the launch whose parts are shown, and what is said of them.
func (c *Footprint) choose(launch int) {
	p := c.Parts
	p.Launch = launch
	for _, list := range [][]Component{p.Components, p.Beyond} {
		for i := range list {
			if v := list[i].Value(launch); !math.IsNaN(v) {
				list[i].OfLaunch = new(v)
			}
		}
	}
	if host := PointsOf(c.Figure).Increase.Value(launch); p.Of == onGPUs && !math.IsNaN(host) &&
		p.Component(figure.TotalMemory).Known() {
		p.Notes = append(p.Notes, fmt.Sprintf("%s in host memory grew by %s MiB as well", PointsOf(c.Figure).Of,
			explain.Short(host)))
	}
	if p.Of == onGPUs {
		part := c.offloadedInPart()
		p.Notes = slices.DeleteFunc(append(p.Notes, part), func(s string) bool { return s == "" })
	}
	if v := p.Component(figure.HostParts).Value(launch); !math.IsNaN(v) {
		p.Notes = append(p.Notes, fmt.Sprintf("%s MiB of the components are in host memory (embeddings, buffers for "+
			"results), from the engine's log; everything else covers GPU memory only", explain.Short(-v)))
	}
	for i := range p.Components {
		if f := &p.Components[i]; f.Name == figure.FrameworkOverhead && f.Value(launch) < 0 {
			f.Words = fmt.Sprintf("everything else is negative (%s MiB): the parts are requested sizes, and their sum "+
				"exceeds the growth of %s", explain.Short(f.Value(launch)), p.Of)
			p.Notes = append(p.Notes, f.Words)
		}
	}
}

// add appends a component.
func (p *Parts) add(f evidence.Figure) {
	f.Title, f.Unit = figure.Title(f.Name), "MiB"
	f.Summarise()
	if !f.Known() {
		f.Method, f.Blind, f.How = "", "", ""
	}
	c := Component{Figure: f}
	if f.Known() {
		c.Confidence = confidenceOf(f.Name, f.Method)
	}
	c.DType = map[string]string{figure.ModelWeights: p.DTypes.Weights, figure.KVCache: p.DTypes.KVCache,
		figure.KVCacheUsed: p.DTypes.KVCache,
		figure.Activations: p.DTypes.Activations}[f.Name]
	p.Components = append(p.Components, c)
}

// inside is what was read inside the engine at the end of the measured requests, else of the load.
func (c *Footprint) inside(component, name string) evidence.Figure {
	f := evidence.Figure{Name: name}
	if c.Breakdown != nil {
		f = evidence.Find(c.Breakdown.Measure, name)
		if !f.Known() {
			f = evidence.Find(c.Breakdown.Load, name)
		}
	}
	f.Name = component
	return f
}

// always is a calculated component, the same in every launch.
func always(component, method, how string, mib float64, all []evidence.Launch) evidence.Figure {
	f := evidence.Figure{Name: component, Method: method, How: how}
	for _, l := range all {
		f.Exact(l.ID, mib)
	}
	return f
}

func (c *Footprint) weights(all []evidence.Launch) evidence.Figure {
	if f := c.inside(figure.ModelWeights, figure.Weights); f.Known() {
		return f
	}
	m := c.Spec.Model
	switch {
	case c.Says("weights_dtype") == "f32" && m.DType != "f32" && m.Parameters > 0:
		return always(figure.ModelWeights, evidence.ByFormula,
			"4 bytes per parameter: the engine holds weights of other dtypes in f32",
			4*float64(m.Parameters)/record.MiB, all)
	case m.WeightsB > 0:
		return always(figure.ModelWeights, evidence.ByTensors, "sizes of the tensors in the file, not read from the engine",
			float64(m.WeightsB)/record.MiB, all)
	}
	return evidence.Figure{Name: figure.ModelWeights, Absent: "not known: neither a file nor a log"}
}

// TokenBytes is the size of a token in the KV cache by the model's shape; 0 if that or the dtype is unknown.
func (c *Footprint) TokenBytes() float64 {
	m := c.Spec.Model
	kv, _ := dtype.Named(c.Says("kv_dtype"))
	return 2 * float64(m.Layers) * float64(m.KVHeads) * float64(m.HeadDim) * kv.Width()
}

func (c *Footprint) cacheReserved(all []evidence.Launch) evidence.Figure {
	if f := c.inside(figure.KVCache, figure.KVReserved); f.Known() {
		return f
	}
	if b, n := c.TokenBytes(), c.Context(); b > 0 && n > 0 {
		return always(figure.KVCache, evidence.ByFormula, fmt.Sprintf("2 × layers × key-value heads × head size × "+
			"bytes per element × context of %d tokens; for plain or grouped attention", n), b*float64(n)/record.MiB, all)
	}
	return evidence.Figure{Name: figure.KVCache, Absent: "not known: the engine reports neither its size nor its dtype"}
}

func (c *Footprint) cacheUsed(all []evidence.Launch) evidence.Figure {
	if f := c.inside(figure.KVCacheUsed, figure.KVUsed); f.Known() {
		return f
	}
	ratio := evidence.Find(c.Server, "kv_cache_usage_ratio")
	b := c.TokenBytes()
	switch tokens := c.Figure(figure.Tokens).Center() + c.Figure(figure.Prompt).Center(); {
	case b > 0 && !math.IsNaN(tokens):
		return always(figure.KVCacheUsed, evidence.ByFormula,
			"tokens of prompt and answer × 2 × layers × key-value heads × head size × bytes per element",
			b*tokens/record.MiB, all)
	case ratio.Known():
		return evidence.Figure{Name: figure.KVCacheUsed,
			Absent: fmt.Sprintf("size not known; the server reports at most %s%% of the KV cache",
				explain.Short(100*ratio.Center()))}
	}
	return evidence.Figure{Name: figure.KVCacheUsed, Absent: "not known"}
}

// several is the overhead of several devices.
func (c *Footprint) several(all []evidence.Launch) evidence.Figure {
	f := evidence.Figure{Name: figure.MultiGPUOverhead}
	devices := map[string]bool{}
	for _, a := range c.Counted {
		for _, m := range a.Metrics {
			if device, ok := strings.CutSuffix(m.Name, "."+hardware.HeldBytes); ok && m.Value > 0 &&
				a.Sources[m.Source].PID != 0 {
				devices[device] = true
			}
		}
	}
	switch {
	case len(devices) > 1:
		f.Absent = fmt.Sprintf("not known: %d GPUs hold its memory", len(devices))
	case c.Device == nil:
		f.Absent = "the number of devices is not known"
	case len(devices) == 1 || c.Device.Class != record.GPU || c.Browser() != "":
		return always(figure.MultiGPUOverhead, evidence.ByFormula, "none with one device", 0, all)
	default:
		f.Absent = "the number of GPUs is not known"
	}
	return f
}
