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

// whole is all that an engine takes, and what of it came since the baseline.
type whole struct {
	of              string
	method          string
	increase, total evidence.Figure
	notes           []string
	host            map[int]float64 // MiB of the parts that lie in none of it, by launch
}

// wholeOf is by total PSS; by GPU memory where a GPU computes, because what lies there is in no PSS; by RSS where PSS
// can't be read.
func (c *Cell) wholeOf(all []evidence.Launch) whole {
	if c.Device != nil && c.Device.Class == record.GPU {
		return c.wholeOnGPU(all)
	}
	p := PointsOf(c.Figure)
	w := whole{of: p.Of, method: record.MethodSmapsRollup, increase: p.Increase, total: p.Peak}
	if p.Of != "total PSS" {
		w.method = record.MethodStatm
		if c.Spec.Model.Format == record.Foreign {
			w.method = record.MethodForeign
		}
		w.notes = append(w.notes,
			"the whole is a sum of RSS, which counts pages that several processes share more than once")
	}
	w.named(w.method)
	return w
}

// named gives the figures their components' names.
func (w *whole) named(method string) {
	w.increase.Name, w.increase.Method = figure.MemoryIncrease, method
	w.total.Name, w.total.Method = figure.TotalMemory, method
}

// onGPUs is what a whole is of where a GPU computes.
const onGPUs = "GPU memory of its processes"

func (c *Cell) wholeOnGPU(all []evidence.Launch) whole {
	w := whole{of: onGPUs, method: gpuMethod,
		notes: []string{"a GPU computes: what lies in its memory is in no PSS, and no difference is formed from PSS"}}
	const how = "what drivers count for the engine's processes, all GPUs together, "
	w.total.How, w.increase.How = how+"at its highest",
		how+"at its highest, less what they held at the end of the baseline (nothing, where none was listed)"
	for _, l := range all {
		v := vramOf(l)
		w.total.Add(l.ID, v.peak)
		base := v.baseline
		if math.IsNaN(base) {
			base = 0
		}
		w.increase.Add(l.ID, v.peak-base)
	}
	absent := "no driver tells what the engine's processes hold of the GPU's memory"
	w.total.Absent, w.increase.Absent = absent, absent
	if host := PointsOf(c.Figure).Increase; host.Known() && len(w.total.Values) > 0 {
		w.notes = append(w.notes, fmt.Sprintf("besides, %s grew by %s MiB in host memory", PointsOf(c.Figure).Of,
			explain.Short(host.Center())))
	}
	if part, ok := c.offloadedInPart(); ok {
		w.notes = append(w.notes, part)
	} else {
		w.host = map[int]float64{}
		most := 0.0
		for _, l := range all {
			w.host[l.ID] = hostParts(l)
			most = max(most, w.host[l.ID])
		}
		if most > 0 {
			w.notes = append(w.notes, fmt.Sprintf(
				"by the engine's log %s MiB of the parts lie in the host's memory (the table of embeddings, buffers for results): "+
					"everything else is of the GPU's, and less only what lies there", explain.Short(most)))
		}
	}
	w.named(gpuMethod)
	return w
}

// offloadedInPart says so where some layers are on the GPU and others are not: by llama.cpp's log, or by what Ollama
// says of the model's size.
func (c *Cell) offloadedInPart() (string, bool) {
	const both = " are on the GPU: parts lie in its memory and in the host's, and nothing is left over of either by difference"
	if on, all, ok := strings.Cut(c.Says("gpu_layers"), " of "); ok && on != all {
		return fmt.Sprintf("%s of %s layers%s", on, all, both), true
	}
	if c.Device == nil {
		return "", false
	}
	size, err := strconv.ParseFloat(c.Device.Detail["size_bytes"], 64)
	on, err2 := strconv.ParseFloat(c.Device.Detail["size_vram_bytes"], 64)
	if err != nil || err2 != nil || on <= 0 || on >= size {
		return "", false
	}
	return fmt.Sprintf("by the server's own word %s of the model's %s MiB%s", explain.Short(on/record.MiB),
		explain.Short(size/record.MiB), both), true
}

// hostParts is what of a launch's weights, KV cache and workspaces lies in the host's memory though a GPU computes, in
// MiB, by the log's names of buffers: llama.cpp never puts the table of embeddings on a GPU, and copies results by way
// of the host's memory.
func hostParts(l evidence.Launch) float64 {
	at := func(p record.Phase) func(*record.Attempt) float64 {
		return func(a *record.Attempt) float64 {
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
		}
	}
	for _, p := range []record.Phase{record.Measure, record.Load} {
		if v := l.Last(p, at(p)); !math.IsNaN(v) {
			return v
		}
	}
	return 0
}

// inHost tells the sizes of buffers in the host's memory from those on a device: weights.CPU_Mapped_bytes,
// compute.CUDA_Host_bytes.
func inHost(name string) bool {
	kind, backend, ok := strings.Cut(strings.TrimSuffix(name, "_bytes"), ".")
	return ok && slices.Contains([]string{"weights", "kv_reserved", "compute", "output"}, kind) &&
		(strings.HasPrefix(backend, "CPU") || strings.HasSuffix(backend, "_Host"))
}

// remainder is what is left of the increase beyond the model's components, launch by launch. It may be below zero, and
// is shown so.
func (c *Cell) remainder(
	all []evidence.Launch,
	w whole,
	weights, cache, working, several evidence.Figure,
) evidence.Figure {
	f := evidence.Figure{
		Name:   figure.FrameworkOverhead,
		Method: evidence.ByDifference,
		Absent: "there is nothing to take a difference from: " +
			w.increase.Absent,
	}
	if len(w.increase.Values) > 0 {
		f.Absent = "the weights are not known, and would lie in it"
	}
	if _, part := c.offloadedInPart(); part && w.method == gpuMethod {
		f.Absent = "parts lie in the GPU's memory and in the host's"
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
	f.How = fmt.Sprintf("the increase from baseline to peak (%s) less %s", w.of, strings.Join(minus, ", "))
	if len(holds) > 0 {
		f.How += "; in it still: " + strings.Join(holds, ", ")
	}
	if slices.ContainsFunc(all, func(l evidence.Launch) bool { return w.host[l.ID] > 0 }) {
		f.How += "; what of these lies in the host's memory is not taken off"
	}
	f.How += "; it gathers the errors of all of them"
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
