package memory

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// whole is an engine's total memory and its increase since the baseline.
type whole struct {
	of              string
	method          string
	increase, total evidence.Figure
	notes           []string
	host            map[int]float64 // MiB of the parts that are not in it, by launch
}

// wholeOf uses total PSS; GPU memory if a GPU computes, because PSS leaves it out; RSS if PSS cannot be read.
func (c *Footprint) wholeOf(all []evidence.Launch) whole {
	if c.Device != nil && c.Device.Class == record.GPU {
		return c.wholeOnGPU(all)
	}
	p := PointsOf(c.Figure)
	w := whole{of: p.Of, method: record.MethodSmapsRollup, increase: p.Increase, total: p.Peak}
	if p.Peak.Name != figure.PeakPSS {
		w.method = record.MethodStatm
		w.notes = append(w.notes,
			"the total is a sum of RSS, which counts pages that several processes share more than once")
	}
	return w
}

// onGPUs is what the whole is if a GPU computes.
const onGPUs = "GPU memory of its processes"

func (c *Footprint) wholeOnGPU(all []evidence.Launch) whole {
	w := whole{of: onGPUs, method: gpuMethod,
		notes: []string{"the model is in GPU memory, which PSS leaves out; differences use GPU memory"}}
	const how = "memory that drivers report for the engine's processes, all GPUs together, "
	w.total.How, w.increase.How = how+"at the peak",
		how+"at the peak minus that at the end of the baseline (0 if none was listed)"
	for _, l := range all {
		p := vramOf(l)
		w.total.Add(l.ID, p.peak)
		w.increase.Add(l.ID, p.peak-p.baseline)
	}
	absent := "no driver reports the GPU memory of the engine's processes"
	w.total.Absent, w.increase.Absent = absent, absent
	if c.offloadedInPart() == "" {
		w.host = map[int]float64{}
		for _, l := range all {
			w.host[l.ID] = hostParts(l)
		}
	}
	return w
}

// offloadedInPart says of a cell on a GPU if only some layers are there, by llama.cpp's log or Ollama's sizes.
func (c *Footprint) offloadedInPart() string {
	const both = " are on the GPU: components are in GPU and host memory, so no difference is formed"
	if c.Engine != nil && c.Engine.Layers != nil && c.Engine.Layers.GPU != c.Engine.Layers.All {
		return fmt.Sprintf("%d of %d layers%s", c.Engine.Layers.GPU, c.Engine.Layers.All, both)
	}
	size, err := strconv.ParseFloat(c.Device.Detail["size_bytes"], 64)
	on, err2 := strconv.ParseFloat(c.Device.Detail["size_vram_bytes"], 64)
	if err != nil || err2 != nil || on <= 0 || on >= size {
		return ""
	}
	return fmt.Sprintf("%s of the model's %s MiB, as the server reports,%s", explain.Short(on/record.MiB),
		explain.Short(size/record.MiB), both)
}

// hostParts is the part of weights, KV cache and workspaces that is in host memory although a GPU computes, in MiB, by
// the names of buffers in the log. llama.cpp keeps embeddings in host memory, and copies results through it.
func hostParts(l evidence.Launch) float64 {
	for _, p := range []record.Phase{record.Measure, record.Load} {
		v := l.Last(p, func(a *record.Attempt) float64 {
			sum := math.NaN()
			for _, m := range a.Metrics {
				if m.Edge != p || a.Sources[m.Source].Method != evidence.EngineLog {
					continue
				}
				sum = evidence.MaxKnown(sum, 0)
				if inHost(m.Name) {
					sum += m.Value / record.MiB
				}
			}
			return sum
		})
		if !math.IsNaN(v) {
			return v
		}
	}
	return 0
}

// inHost reports whether a buffer is in host memory: weights.CPU_Mapped_bytes, compute.CUDA_Host_bytes.
func inHost(name string) bool {
	kind, backend, ok := strings.Cut(strings.TrimSuffix(name, "_bytes"), ".")
	return ok && slices.Contains([]string{"weights", "kv_reserved", "compute", "output"}, kind) &&
		(strings.HasPrefix(backend, "CPU") || strings.HasSuffix(backend, "_Host"))
}

// remainder is the increase minus the model's components, launch by launch. It may be negative.
func (c *Footprint) remainder(
	all []evidence.Launch, w whole, weights, cache, working, several evidence.Figure,
) evidence.Figure {
	f := evidence.Figure{Name: figure.FrameworkOverhead, Method: evidence.ByDifference,
		Absent: "no difference: " + w.increase.Absent}
	if len(w.increase.Values) > 0 {
		f.Absent = "the weights are not known"
	}
	if w.method == gpuMethod && c.offloadedInPart() != "" {
		f.Absent = "components are in GPU and host memory"
		return f
	}
	minus, holds := []string{"weights"}, []string{}
	for _, part := range []struct {
		of   evidence.Figure
		name string
	}{{cache, "KV cache (reserved)"}, {working, "activations"}, {several, "multi-GPU overhead"}} {
		if len(part.of.Values) > 0 {
			minus = append(minus, part.name)
		} else {
			holds = append(holds, part.name)
		}
	}
	f.How = fmt.Sprintf("the increase from baseline to peak (%s) minus %s", w.of, strings.Join(minus, ", "))
	if len(holds) > 0 {
		f.How += ". The difference includes " + strings.Join(holds, ", ")
	}
	if slices.ContainsFunc(all, func(l evidence.Launch) bool { return w.host[l.ID] > 0 }) {
		f.How += ". The difference includes components in host memory"
	}
	f.How += ". The difference has the errors of all these figures, and can be negative"
	for _, l := range all {
		left := w.increase.Value(l.ID) - weights.Value(l.ID) + w.host[l.ID]
		for _, part := range []evidence.Figure{cache, working, several} {
			if v := part.Value(l.ID); !math.IsNaN(v) {
				left -= v
			}
		}
		f.Exact(l.ID, left)
	}
	return f
}
