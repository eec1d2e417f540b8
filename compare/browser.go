package compare

import (
	"cmp"
	"slices"

	"llmparity/compare/cost"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/record"
)

// costs compares each cell in a browser with the native cells that compute with the same library, from the same file,
// on the processor, with as many threads.
func (r *Result) costs() (out []*cost.Cost) {
	for i, page := range r.Cells {
		if page.Browser() == "" || !page.onProcessor() {
			continue
		}
		var natives []cost.Cell
		for j, c := range r.Cells {
			if c.Run == page.Run && c.Browser() == "" && c.onProcessor() && page.sameWork(c) {
				natives = append(natives, r.costOf(j))
			}
		}
		if len(natives) == 0 {
			continue
		}
		if c := cost.Of(page.Engine.Computes, r.costOf(i), natives); c != nil {
			out = append(out, c)
		}
	}
	return out
}

// costOf is a cell as package cost takes it.
func (r *Result) costOf(at int) cost.Cell {
	c := r.Cells[at]
	return cost.Cell{Index: at, Vector: c.Engine.Vector, Measured: func(name string) (evidence.Figure, []float64) {
		f := c.Figure(name)
		return f, f.PerLaunch(c.counted)
	}}
}

// onProcessor reports whether a cell ran and a known library computed on the CPU itself: no WebGPU, not even one that a
// program emulates.
func (c *Cell) onProcessor() bool {
	return c.Launches.Counted > 0 && c.Engine != nil && c.Engine.Computes != "" &&
		c.Device != nil && c.Device.Class == record.CPU
}

// sameWork reports whether two cells have one library compute one request, with the weights of one file, as many
// threads and a KV cache of one dtype.
func (c *Cell) sameWork(of *Cell) bool {
	for _, setting := range []string{"threads", "kv_dtype", "flash_attention"} {
		if a, b := c.Says(setting), of.Says(setting); a != "" && b != "" && a != b {
			return false
		}
	}
	plain := !slices.Contains([]record.Sameness{c.Weights(), of.Weights()}, record.OtherValues)
	return plain && c.Engine.Computes == of.Engine.Computes && SameRequest(c, of) &&
		c.Spec.Model.Values() == of.Spec.Model.Values()
}

// otherShaders labels two pages that compute with the shaders of different libraries on one adapter.
func otherShaders(a, b *Cell) []Reason {
	if a.Browser() == "" || b.Browser() == "" || a.Device.Class == record.CPU || a.Device.Class != b.Device.Class ||
		a.Device.Name != b.Device.Name {
		return nil
	}
	x, y := a.Engine.Computes, b.Engine.Computes
	if x == y || x == "" || y == "" {
		return nil
	}
	return []Reason{reason(Limits, explain.OtherShaders, a.Title(), x, b.Title(), y, a.Device.Name)}
}

// shadersDiffer returns a reason if two engines run their shaders on a software adapter: how well these suit a CPU,
// which nobody wrote them for, says nothing about the engines.
func shadersDiffer(a, b *Cell) []Reason {
	if !bothSoftware(a, b) || a.Spec.Engine == b.Spec.Engine {
		return nil
	}
	return []Reason{reason(Limits, explain.SoftwareSpeeds, cmp.Or(a.Device.Name, "a software adapter"))}
}

func bothSoftware(a, b *Cell) bool {
	software := func(c *Cell) bool { return c.Device != nil && c.Device.Class == record.SoftwareAdapter }
	return software(a) && software(b)
}
