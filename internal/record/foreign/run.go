package foreign

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"llmparity/internal/record"
)

// Heap is the name of the values in heap_used_mb, GPU of those in gpu_mb, and GPUPeak of those in gpu_peak_mb.
const (
	Heap    = "heap_used_bytes"
	GPU     = "webgpu_bytes"
	GPUPeak = "webgpu_peak_bytes"
)

// run converts rows to a run, with a cell for each label in order of appearance.
func (f *file) run(rows []row, sum string) *record.Run {
	first := slices.MinFunc(rows, func(a, b row) int { return cmp.Compare(a.ns, b.ns) }).ns
	run := &record.Run{Dir: f.path, Meta: record.Meta{Schema: record.Schema, Name: filepath.Base(f.path),
		Started: time.Unix(0, first).UTC()},
		Predictions: map[int]record.Prediction{}, Risks: map[int]record.Risk{}, Status: record.OK}
	of := map[string][]row{}
	var labels []string
	for _, r := range rows {
		if of[r.label] == nil {
			labels = append(labels, r.label)
		}
		r.ns -= first
		of[r.label] = append(of[r.label], r)
	}
	if len(labels) > mostLabels {
		f.note("many-labels", fmt.Sprintf("%s has %d labels; only the first %d are shown (each label becomes a cell)",
			filepath.Base(f.path), len(labels), mostLabels), 0)
		labels = labels[:mostLabels]
	}
	for i, label := range labels {
		cell := record.Cell{ID: i + 1, Engine: label, Model: record.Model{Format: record.Foreign}, Repetitions: 1}
		run.Cells = append(run.Cells, cell)
		a := f.attempt(cell, of[label])
		a.Events = []record.Event{{Engine: &record.EngineInfo{Name: "rows of",
			Version: filepath.Base(f.path), Path: f.path, SHA256: sum,
			Parts: map[string]string{"rows": strconv.Itoa(len(of[label])), "timestamps": f.times}}}}
		run.Attempts = append(run.Attempts, a)
	}
	f.note("foreign-rows", fmt.Sprintf("%s was written by another program or by watch: sizes are read as MiB, "+
		"timestamps are %s; model, prompt, device and load are unknown", filepath.Base(f.path), f.times), 0)
	run.Warnings = f.notices
	return run
}

// attempt converts a label's rows to a launch: samples by process, and totals.
func (f *file) attempt(cell record.Cell, rows []row) *record.Attempt {
	f.backwards(rows)
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.ns, b.ns) })
	a := &record.Attempt{ID: cell.ID, Beginning: record.Beginning{Cell: cell.ID, Repetition: 1}, Status: record.OK,
		BeginNS: rows[0].ns, EndNS: rows[len(rows)-1].ns, Sources: map[int]record.Source{}}
	every := interval(rows)
	ids := map[who]int{}
	last := map[int]int64{} // time of a source's last row
	for _, r := range rows {
		id, ok := ids[r.who]
		if !ok {
			id = len(ids) + 1
			ids[r.who] = id
			a.Sources[id] = record.Source{Role: cmp.Or(r.who.name, "process"), Method: record.MethodForeign,
				PID: r.who.pid, Start: r.who.start,
				Every: every, Sees: "what the program that wrote " + filepath.Base(f.path) + " measured",
				Blind: "unknown"}
		}
		last[id] = r.ns
		a.Samples = append(a.Samples, record.SampleRow{Source: id, NS: r.ns, RSS: r.rss, VMS: r.vms, PSS: math.NaN()})
		for _, m := range []struct {
			name string
			mib  float64
		}{{Heap, r.heap}, {GPU, r.gpu}, {GPUPeak, r.peak}} {
			if !math.IsNaN(m.mib) {
				a.Metrics = append(a.Metrics,
					record.MetricRow{Source: id, NS: r.ns, Name: m.name, Value: m.mib * record.MiB})
			}
		}
	}
	f.totals(a, last)
	return a
}

// backwards warns of rows earlier than the previous row of the same process.
func (f *file) backwards(rows []row) {
	at := map[who]int64{}
	for _, r := range rows {
		if before, ok := at[r.who]; ok && r.ns < before {
			f.note("clock-backwards", "rows are sorted by time, because some are earlier than the previous row "+
				"of their process (clock set back, or unsorted): the first in line", r.line)
		}
		at[r.who] = r.ns
	}
}

// interval returns the median time between readings, in whole milliseconds.
func interval(rows []row) time.Duration {
	var gaps []int64
	for i := 1; i < len(rows); i++ {
		if gap := rows[i].ns - rows[i-1].ns; gap > 0 {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return time.Duration(gaps[len(gaps)/2]).Round(time.Millisecond)
}

// totals sums the processes present at each time: those between their first and last row. If processes were not read at
// the same time, it uses the last reading of each, and warns.
func (f *file) totals(a *record.Attempt, last map[int]int64) {
	type reading struct{ rss, vms float64 }
	there := map[int]reading{}
	apart := false
	for i := 0; i < len(a.Samples); {
		now := a.Samples[i].NS
		read := map[int]bool{}
		for ; i < len(a.Samples) && a.Samples[i].NS == now; i++ {
			s := a.Samples[i]
			there[s.Source] = reading{s.RSS, s.VMS}
			read[s.Source] = true
		}
		total := record.TotalRow{Method: record.MethodForeign, NS: now, PSS: math.NaN(), USS: math.NaN(),
			Swap: math.NaN()}
		for _, id := range slices.Sorted(maps.Keys(there)) { // a fixed order, for equal sums of floats
			apart = apart || !read[id]
			total.RSS, total.VMS = total.RSS+there[id].rss, total.VMS+there[id].vms
			total.Processes++
			if last[id] == now {
				delete(there, id)
			}
		}
		a.Totals = append(a.Totals, total)
	}
	if apart {
		a.Warnings = append(a.Warnings, record.Warning{Code: "readings-apart",
			Text: "processes were not read at the same time: totals use the last reading of each"})
	}
}
