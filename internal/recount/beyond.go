package recount

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// What a browser takes beyond the model, worked out again: by process and kind of memory, between the baseline and the
// highest moment.

// mappedAt is one reading of all processes: sizes in MiB by role and kind, and the latest time in it.
type mappedAt struct {
	at   int64
	size map[string]float64 // role, a blank, kind
}

// total is of some kinds, over the roles that begin with a word that is wanted; of all where none is.
func (m mappedAt) total(roles []string, kinds ...string) float64 {
	sum := 0.0
	for _, key := range slices.Sorted(maps.Keys(m.size)) {
		role, kind, _ := strings.Cut(key, " ")
		if slices.Contains(kinds, kind) && (roles == nil || slices.Contains(roles, role)) {
			sum += m.size[key]
		}
	}
	return sum
}

func (m mappedAt) own() float64 {
	return m.total(nil, "pss_anonymous_bytes", "pss_shared_bytes")
}

// mapped are an attempt's readings: at the ends of phases, and by time while it loads.
func (a *memoryAttempt) mapped() (ends map[string]mappedAt, between map[int64]mappedAt) {
	ends, between = map[string]mappedAt{}, map[int64]mappedAt{}
	begin, _, next, loads := a.stretch("load")
	for _, m := range a.metrics {
		s := a.sources[m.source]
		if s.Method != "smaps_rollup" {
			continue
		}
		var into mappedAt
		switch {
		case m.edge != "":
			into = ends[m.edge]
		case loads && m.at >= begin && m.at < next:
			into = between[m.at]
		default:
			continue
		}
		if into.size == nil {
			into.size = map[string]float64{}
		}
		into.size[s.Role+" "+m.name] += m.value / (1 << 20)
		into.at = max(into.at, m.at)
		if m.edge != "" {
			ends[m.edge] = into
		} else {
			between[m.at] = into
		}
	}
	return ends, between
}

// live is what the ledger had at the end of a phase, else at a time.
func (a *memoryAttempt) live(phase string, at int64) float64 {
	v, latest := math.NaN(), int64(math.MinInt64)
	for _, m := range a.metrics {
		if a.sources[m.source].Method != "webgpu_ledger" || m.name != "live_bytes" {
			continue
		}
		if phase != "" && m.edge == phase {
			return m.value / (1 << 20)
		}
		if m.at <= at && m.at >= latest {
			v, latest = m.value/(1<<20), m.at
		}
	}
	return v
}

// beyond are the parts of what is left when the model's are taken off, by name.
func (g *memoryAgain) beyond(parts map[string]Figure) map[string]Figure {
	out := map[string]Figure{}
	if g.onGPU() || len(g.cell.Figures["peak_pss"].Values) == 0 {
		return out
	}
	for _, l := range g.launches {
		id := l.opener.id
		left := parts["framework_overhead"].of(id)
		sizes := l.beyond(func(name string) float64 { return parts[name].of(id) })
		if sizes == nil || math.IsNaN(left) {
			continue
		}
		share := 0.0
		for _, v := range sizes {
			share += v
		}
		sizes["browser_share"], sizes["everything_else"] = share, left-share
		for name, v := range sizes {
			f := out[name]
			f.keep(id, v, true)
			out[name] = f
		}
	}
	for name, f := range out {
		f.conclude()
		out[name] = f
	}
	return out
}

func (l memoryLaunch) beyond(model func(name string) float64) map[string]float64 {
	ends, between := l.opener.mapped()
	live := map[string]float64{}
	for phase, m := range ends {
		live[phase] = l.opener.live(phase, m.at)
	}
	for _, a := range l.members {
		if a == l.opener {
			continue
		}
		later, _ := a.mapped()
		for phase, m := range later {
			ends[phase], live[phase] = m, a.live(phase, m.at)
		}
	}
	var top mappedAt
	held := math.NaN()
	for _, at := range slices.Sorted(maps.Keys(between)) {
		if m := between[at]; top.size == nil || m.own() > top.own() {
			top, held = m, l.opener.live("", at)
		}
	}
	for _, phase := range []string{"load", "warmup", "measure"} {
		if m, ok := ends[phase]; ok && (top.size == nil || m.own() > top.own()) {
			top, held = m, live[phase]
		}
	}
	before, ok := ends["baseline"]
	after, ended := ends["measure"]
	if !ended {
		after, ended = ends["load"]
	}
	if !ok || !ended || top.size == nil || math.IsNaN(held) {
		return nil
	}
	whole := 0.0
	for _, name := range []string{"model_weights", "kv_cache", "activations"} {
		if v := model(name); !math.IsNaN(v) {
			whole += v
		}
	}
	page, gpu := []string{"renderer"}, []string{"gpu-process"}
	private := func(m mappedAt, roles []string) float64 { return m.total(roles, "pss_anonymous_bytes") }
	all := private(top, nil) - private(before, nil)
	ofPage, ofGPU := private(top, page)-private(before, page), private(top, gpu)-private(before, gpu)
	return map[string]float64{
		"page_copies": private(top, page) - private(after, page),
		"page_heaps":  private(after, page) - private(before, page),
		"gpu_process": ofGPU - held, "other_processes": all - ofPage - ofGPU,
		"transfer_buffers": top.total(nil, "pss_shared_bytes") - before.total(nil, "pss_shared_bytes"),
		"program_files":    after.total(nil, "pss_files_bytes") - before.total(nil, "pss_files_bytes"),
		"not_yet_there":    held - whole,
	}
}

// sureOf is how far a part can be trusted.
func sureOf(part string) string {
	switch part {
	case "everything_else":
		return "low"
	case "page_copies", "page_heaps", "gpu_process", "not_yet_there":
		return "medium"
	}
	return "high"
}
