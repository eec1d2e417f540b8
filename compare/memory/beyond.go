package memory

import (
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// holdings are the parts of PSS at one time, in bytes, by role and kind, and the live bytes of the ledger.
type holdings struct {
	at   int64
	held map[[2]string]float64
	live float64
}

// sum leaves out files: other programs share them, which changes how much of them counts here.
func (h holdings) sum() float64 {
	return h.of("", record.PSSAnonymous, record.PSSShared)
}

// of sums the memory of some kinds in the processes of a role, in MiB; empty: in all processes.
func (h holdings) of(role string, kinds ...string) float64 {
	sum := 0.0
	for key, v := range h.held {
		if (role == "" || role == key[0]) && slices.Contains(kinds, key[1]) {
			sum += v
		}
	}
	return sum / record.MiB
}

// beyond splits what a browser uses beyond the model, if the parts of PSS were read; left is the increase minus the
// model's parts.
func (c *Footprint) beyond(all []evidence.Launch, w whole, left evidence.Figure, model ...evidence.Figure) []Component {
	if w.method != record.MethodSmapsRollup {
		return nil
	}
	rows := figure.Rows(func(r *figure.Row) bool { return r.Beyond })
	parts := rows[1 : len(rows)-1] // between their sum and the rest
	sizes := map[int]map[string]float64{}
	for _, l := range all {
		of, ok := partsBeyond(l, model, c.inPage())
		if math.IsNaN(left.Value(l.ID)) || !ok {
			continue
		}
		for _, p := range parts {
			of[figure.BrowserShare] += of[p.Name]
		}
		of[figure.EverythingElse] = left.Value(l.ID) - of[figure.BrowserShare]
		sizes[l.ID] = of
	}
	if len(sizes) == 0 {
		return nil
	}
	var out []Component
	for _, row := range rows {
		f := evidence.New(row.Name)
		if f.Method = record.MethodSmapsRollup; row.Name == figure.EverythingElse {
			f.Method = evidence.ByDifference
		}
		for _, l := range all {
			if of, ok := sizes[l.ID]; ok {
				f.Exact(l.ID, of[row.Name])
			}
		}
		f.Summarise()
		out = append(out, Component{Figure: f, Confidence: confidenceOf(f.Name, f.Method)})
	}
	return out
}

// inPage reports whether the model is in the page's own memory: WebAssembly computes.
func (c *Footprint) inPage() bool { return c.Browser() != "" && c.Device != nil && c.Device.Class == record.CPU }

// partsBeyond are those of a launch, in MiB; false unless the parts of PSS were read at the baseline, around the peak
// and after it.
func partsBeyond(l evidence.Launch, model []evidence.Figure, inPage bool) (map[string]float64, bool) {
	edges, peak := mapped(l)
	if inPage && math.IsNaN(peak.live) {
		peak.live = 0 // nothing counts what nobody allocates
	}
	base, ok := edges[record.Baseline]
	after, ended := edges[record.Measure]
	if !ended {
		after, ended = edges[record.Load]
	}
	if !ok || !ended || len(peak.held) == 0 || math.IsNaN(peak.live) {
		return nil, false
	}
	const page, gpu, all = "renderer", "gpu-process", ""
	grown := func(role, kind string) float64 { return peak.of(role, kind) - base.of(role, kind) }
	anonymous := func(role string) float64 { return grown(role, record.PSSAnonymous) }
	whole := 0.0
	for _, f := range model {
		if v := f.Value(l.ID); !math.IsNaN(v) {
			whole += v
		}
	}
	live, ofPage := peak.live/record.MiB, 0.0
	if inPage {
		ofPage = whole
	}
	return map[string]float64{
		figure.PageCopies:      peak.of(page, record.PSSAnonymous) - after.of(page, record.PSSAnonymous),
		figure.TransferBuffers: grown(all, record.PSSShared),
		figure.GPUProcess:      anonymous(gpu) - live,
		figure.PageHeaps:       after.of(page, record.PSSAnonymous) - base.of(page, record.PSSAnonymous) - ofPage,
		figure.ProgramFiles:    after.of(all, record.PSSFiles) - base.of(all, record.PSSFiles),
		figure.OtherProcesses:  anonymous(all) - anonymous(page) - anonymous(gpu),
		figure.NotYetThere:     live + ofPage - whole,
	}, true
}

// mapped has a launch's readings at the ends of phases, the latest of several repetitions, and the highest reading since
// the load began: where WebAssembly computes, the highest moment may be in a later phase.
func mapped(l evidence.Launch) (edges map[record.Phase]holdings, peak holdings) {
	edges = map[record.Phase]holdings{}
	for _, a := range append([]*record.Attempt{l.Opener}, l.Attempts...) {
		if a == l.Opener && len(edges) > 0 {
			continue // already seen as a counted attempt
		}
		at, between := map[record.Phase]holdings{}, map[int64]holdings{}
		begin, _, loads := evidence.Reach(a, record.Load)
		for _, m := range a.Metrics {
			if a.Sources[m.Source].Method != record.MethodSmapsRollup {
				continue
			}
			key := [2]string{a.Sources[m.Source].Role, m.Name}
			if m.Edge != "" {
				at[m.Edge] = at[m.Edge].with(m.NS, key, m.Value)
			} else if !loads || m.NS >= begin {
				between[m.NS] = between[m.NS].with(m.NS, key, m.Value)
			}
		}
		for phase, h := range at {
			h.live = liveAt(a, h.at, phase)
			edges[phase] = h
		}
		for _, h := range between {
			h.live = liveAt(a, h.at, "")
			peak = higher(peak, h)
		}
	}
	for _, phase := range []record.Phase{record.Load, record.Warmup, record.Measure} {
		peak = higher(peak, edges[phase])
	}
	return edges, peak
}

func (h holdings) with(at int64, key [2]string, v float64) holdings {
	if h.held == nil {
		h.held = map[[2]string]float64{}
	}
	h.at = max(h.at, at)
	h.held[key] += v
	return h
}

func higher(a, b holdings) holdings {
	if x, y := a.sum(), b.sum(); y > x || y == x && len(b.held) > 0 && b.at < a.at {
		return b
	}
	return a
}

// liveAt has the live bytes of the ledger at a time or at the end of a phase; NaN if it was never read.
func liveAt(a *record.Attempt, ns int64, edge record.Phase) float64 {
	live, at := math.NaN(), int64(math.MinInt64)
	for _, m := range a.Metrics {
		if m.Name != "live_bytes" || a.Sources[m.Source].Method != figure.Ledger {
			continue
		}
		if edge != "" && m.Edge == edge {
			return m.Value
		}
		if m.NS <= ns && m.NS >= at {
			live, at = m.Value, m.NS
		}
	}
	return live
}
