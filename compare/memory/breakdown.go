package memory

import (
	"maps"
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Breakdown is what was read inside an engine. Its lists have the same figures in the same order, known or not. With a
// WebGPU ledger, weights + kv_reserved + workspaces + unattributed = webgpu_ledger in every launch; no other figures
// add up. Without one, an engine's log may have some of the same figures.
type Breakdown struct {
	Load     []evidence.Figure `json:"load"`     // at the end of the load
	Measure  []evidence.Figure `json:"measure"`  // at the end of the measured requests
	Retained []evidence.Figure `json:"retained"` // after the unload, minus the baseline
	Peaks    []ProcessPeaks    `json:"peaks"`
	Notes    []string          `json:"notes"` // how to read it
}

// ProcessPeaks are the highest RSS of a process in each phase. Do not add up several processes: their peaks are at
// different times, and each counts shared pages in full.
type ProcessPeaks struct {
	Process string            `json:"process"`
	Phases  []evidence.Figure `json:"phases"` // by the phases' names
}

// Part is a figure of a breakdown and where the record has it.
type Part struct {
	Name, Title   string
	Method, Value string // of metrics; Value is in bytes
	How           string
	logged        string // how an engine's log has the same; empty: it does not
}

// Of is the part by the method of a cell's launches.
func (p Part) Of(counted []*record.Attempt) Part {
	switch {
	case p.logged == "" || evidence.Has(counted, p.Method):
	case evidence.Has(counted, evidence.EngineLog):
		p.Method, p.How = evidence.EngineLog, p.logged
	case evidence.Has(counted, evidence.EngineTensors):
		p.Method, p.How = evidence.EngineTensors, evidence.HowTensors
	}
	return p
}

// LedgerParts lists the figures that add up to the ledger.
func LedgerParts() []string {
	return []string{figure.Weights, figure.KVReserved, figure.Workspaces, figure.Unattributed}
}

// PartOf is the part that a row of the table is about.
func PartOf(name string) Part {
	r := figure.New(name)
	return Part{r.Name, r.Title, r.Inside.Method, r.Inside.Value, r.How, r.Inside.Logged}
}

// breakdown is nil if no launch read an engine's inside or its processes' peaks.
func breakdown(counted []*record.Attempt) *Breakdown {
	b := &Breakdown{
		Load:     []evidence.Figure{},
		Measure:  []evidence.Figure{},
		Retained: []evidence.Figure{},
		Peaks:    processPeaks(counted),
		Notes:    []string{},
	}
	known := len(b.Peaks) > 0
	for _, row := range figure.Rows(func(r *figure.Row) bool { return r.Inside != nil && r.Name != figure.TotalPSS }) {
		p := PartOf(row.Name)
		if p.Name == figure.EngineSays && !evidence.Has(counted, p.Method) {
			continue // neither a part nor the sum of the others
		}
		p = p.Of(counted)
		load, measure, retained := p.figure(counted), p.figure(counted), p.figure(counted)
		retained.How += ". Retained: the size after the unload minus the size at the baseline; " + garbage(counted)
		for _, l := range evidence.Launches(counted) {
			read := func(phase record.Phase) float64 {
				return l.Last(phase, func(a *record.Attempt) float64 { return p.At(a, phase) })
			}
			load.Exact(l.ID, read(record.Load))
			measure.Exact(l.ID, read(record.Measure))
			// the ledger has these only while a model is loaded
			if !slices.Contains(append(LedgerParts(), figure.KVUsed, figure.EngineSays), p.Name) {
				retained.Exact(l.ID, read(record.Unload)-read(record.Baseline))
			} else {
				retained.Absent = "exists only while a model is loaded"
			}
		}
		b.Load, b.Measure, b.Retained = append(b.Load, load), append(b.Measure, measure), append(b.Retained, retained)
		known = known || len(load.Values)+len(measure.Values)+len(retained.Values) > 0
	}
	if !known {
		return nil
	}
	if evidence.Has(counted, evidence.EngineLog) {
		b.Notes = append(b.Notes, "weights, KV cache and workspaces: reported by the engine in its log when it "+
			"allocates them ("+evidence.EngineLog+")")
	}
	b.pss(counted)
	for _, list := range [][]evidence.Figure{b.Load, b.Measure, b.Retained} {
		evidence.Summarised(list)
	}
	return b
}

// figure is a part without values.
func (p Part) figure(counted []*record.Attempt) evidence.Figure {
	f := evidence.Figure{Name: p.Name, Title: p.Title, Unit: "MiB", Method: p.Method, How: p.How}
	f.Blind = evidence.Blind(counted, p.Method)
	return f
}

// At is the size at the end of a phase, in MiB; NaN unless every source that was read before was read then.
func (p Part) At(a *record.Attempt, edge record.Phase) float64 {
	span, ok := a.Phase(edge)
	read := a.AtEdge(edge, p.Method, p.Value)
	if !ok || len(read) == 0 {
		return math.NaN()
	}
	roles := map[string]bool{}
	for id := range read {
		roles[a.Sources[id].Role] = true
	}
	before, after := map[int]bool{}, map[int]bool{}
	for _, m := range a.Metrics {
		if _, there := read[m.Source]; !there && m.Name == p.Value && a.Sources[m.Source].Method == p.Method {
			before[m.Source] = before[m.Source] || m.NS < span.EndNS
			after[m.Source] = after[m.Source] || m.NS >= span.EndNS
		}
	}
	for id := range before {
		if before[id] && (after[id] || !roles[a.Sources[id].Role]) {
			return math.NaN() // one source is missing: the sum would be too low
		}
	}
	sum := 0.0
	for _, v := range read {
		sum += v // whole numbers: the order does not matter
	}
	return sum / record.MiB
}

// pss adds total PSS.
func (b *Breakdown) pss(counted []*record.Attempt) {
	f := evidence.New(figure.TotalPSS)
	f.Method, f.Absent = record.MethodSmapsRollup, noPSS
	f.Blind = evidence.Blind(counted, record.MethodSmapsRollup)
	load, measure, retained := f, f, f
	retained.How += ". Retained: the size after the unload minus the size at the baseline. This difference includes memory " +
		"that an allocator keeps, and files that other programs now share"
	if !slices.ContainsFunc(counted, func(a *record.Attempt) bool { return !unborn(a.Launch()) }) {
		retained.Absent, retained.Lacks = NoBaseline, evidence.NoProcess
	}
	for _, l := range evidence.Launches(counted) {
		read := func(phase record.Phase) float64 {
			return l.Last(phase, func(a *record.Attempt) float64 { return lastPSS(a, phase) })
		}
		load.Add(l.ID, read(record.Load))
		measure.Add(l.ID, read(record.Measure))
		retained.Add(l.ID, read(record.Unload)-footprintOf(l.Opener).pss.baseline)
	}
	b.Load, b.Measure, b.Retained = append(b.Load, load), append(b.Measure, measure), append(b.Retained, retained)
}

// lastPSS is total PSS at the end of a phase.
func lastPSS(a *record.Attempt, p record.Phase) float64 {
	return lastTotal(a, p, record.MethodSmapsRollup, pssOf)
}

// lastTotal is the reading at the end of a phase, taken just after it; NaN without one.
func lastTotal(a *record.Attempt, p record.Phase, method string, pick func(*record.TotalRow) float64) float64 {
	span, ok := a.Phase(p)
	after := values(a, p, method, func(t *record.TotalRow) float64 {
		if t.NS < span.EndNS {
			return math.NaN()
		}
		return pick(t)
	})
	if !ok || len(after) == 0 {
		return math.NaN()
	}
	return after[len(after)-1]
}

// garbage says whether garbage was collected before memory was read after the unload.
func garbage(counted []*record.Attempt) string {
	for _, a := range counted {
		for _, e := range a.Events {
			if e.Engine != nil && e.Engine.Policy["garbage"] != "" {
				return "garbage collection: " + e.Engine.Policy["garbage"]
			}
		}
	}
	return "includes garbage that was not collected"
}

// processPeaks has one value a launch, in the order in which processes were found.
func processPeaks(counted []*record.Attempt) []ProcessPeaks {
	out := []ProcessPeaks{}
	blind := evidence.Blind(counted, record.MethodSmapsRollup)
	several := map[string]bool{} // by role and phase
	for _, l := range evidence.Launches(counted) {
		for _, phase := range record.Phases() {
			highest := map[string]float64{}
			var order []string
			for _, a := range l.At(phase) {
				peaks, seen := peakRSS(a, phase), map[string]bool{}
				for _, id := range slices.Sorted(maps.Keys(peaks)) {
					role := a.Sources[id].Role
					order, highest[role] = explain.AppendNew(order, role), max(highest[role], peaks[id])
					f := phaseOf(&out, role, phase, blind)
					if of := role + " " + string(phase); seen[role] && !several[of] {
						several[of] = true
						f.How += "; the highest of several processes"
					}
					seen[role] = true
				}
			}
			for _, role := range order {
				phaseOf(&out, role, phase, blind).Add(l.ID, highest[role])
			}
		}
	}
	for i := range out {
		evidence.Summarised(out[i].Phases)
	}
	return out
}

// peakRSS returns the highest RSS of each source's process in a phase, in MiB, by source.
func peakRSS(a *record.Attempt, p record.Phase) map[int]float64 {
	out := map[int]float64{}
	for _, s := range a.Samples {
		if s.Edge == p && !math.IsNaN(s.HWM) {
			out[s.Source] = s.HWM
		}
	}
	return out
}

// phaseOf finds a process's figure for a phase; a new process gets one for every phase.
func phaseOf(all *[]ProcessPeaks, role string, phase record.Phase, blind string) *evidence.Figure {
	at := slices.IndexFunc(*all, func(p ProcessPeaks) bool { return p.Process == role })
	if at < 0 {
		p := ProcessPeaks{Process: role}
		for _, name := range record.Phases() {
			p.Phases = append(p.Phases, evidence.Figure{Name: string(name), Title: string(name), Unit: "MiB",
				Method: record.MethodSmapsRollup, Blind: blind,
				How: "the highest RSS of the process in the phase, from the kernel. For a process that llmparity did not start, " +
					"the highest RSS since its start"})
		}
		at = len(*all)
		*all = append(*all, p)
	}
	return &(*all)[at].Phases[slices.Index(record.Phases(), phase)]
}

// ledgerWarning says if the ledger may count too much.
func (c *Footprint) ledgerWarning() []record.Warning {
	uncertain, worst := 0, 0.0
	for _, a := range c.Counted {
		most := 0.0
		for _, m := range a.Metrics {
			if m.Name == "uncertain_count" && a.Sources[m.Source].Method == figure.Ledger {
				most = max(most, m.Value)
			}
		}
		if most > 0 {
			uncertain++
		}
		worst = max(worst, most)
	}
	if uncertain == 0 {
		return nil
	}
	return []record.Warning{explain.Ledger.With(uncertain, len(c.Counted), worst)}
}
