package record

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/lines"
)

// Recording writes an attempt. Its rows count once End has committed them.
type Recording struct {
	w        *Writer
	id       int
	cell     Cell
	label    string
	requests int
	source   map[int]Source
	tokens   int64 // offset in tokens.csv where its rows begin
	stolen   *float64
	build    Build // what ran, as far as it was reported
}

// Beginning is the start of an attempt.
type Beginning struct {
	Cell       int     `json:"cell"`             // number of the cell
	Repetition int     `json:"repetition"`       // from 1; 0: a warm-up launch
	Warmup     bool    `json:"warmup,omitempty"` // a warm-up launch, which no statistic counts
	Load1      float64 `json:"load1"`            // load average over 1 minute just before
	// OpenedBy is the attempt that opened the session that this one continues in; absent: it opens its own.
	OpenedBy int `json:"opened_by,omitempty"`
	// Scoring is set if the engine only scores a given text.
	Scoring *Scoring `json:"scoring,omitempty"`
	// Machine is the state of the machine just before.
	Machine *MachineState `json:"machine,omitempty"`
}

// Begin starts an attempt of a cell. Its number is safe on disk before there are rows with it, so that a resumed run
// does not use it again.
func (w *Writer) Begin(c Cell, b Beginning) *Recording {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.begin(c, b)
	w.sync()
	return r
}

func (w *Writer) begin(c Cell, b Beginning) *Recording {
	w.attempts++
	r := &Recording{w: w, id: w.attempts, cell: c, source: map[int]Source{}, tokens: w.files[toTokens].Size()}
	b.Cell = c.ID
	r.label = fmt.Sprintf("%s-c%d-r%d", c.Engine, c.ID, b.Repetition)
	if b.Warmup {
		r.label = fmt.Sprintf("%s-c%d-warmup", c.Engine, c.ID)
	}
	if b.Scoring != nil {
		r.label = fmt.Sprintf("%s-c%d-scoring", c.Engine, c.ID)
	}
	if b.Machine != nil {
		b.Load1 = b.Machine.Load1
	}
	w.putLocked(entry{Attempt: r.id, Begin: &b})
	return r
}

// ID returns the attempt's number, unique in the run.
func (r *Recording) ID() int { return r.id }

// Source announces a source and returns its number.
func (r *Recording) Source(s Source) int {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.w.sources++
	id := r.w.sources
	r.source[id] = s
	r.w.putLocked(entry{Attempt: r.id, Source: &sourceLine{ID: id, Source: s}})
	return id
}

// Sample writes a reading: process figures to samples.csv, other values to metrics.csv.
func (r *Recording) Sample(source int, s Sample) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if s.OfProcess() {
		r.process(source, s)
	}
	for _, v := range s.Values {
		r.value(source, s, v)
	}
}

func (r *Recording) value(source int, s Sample, v Value) {
	if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
		return // not measured
	}
	w := r.w
	l := append(w.clock.stamp(w.line[:0], s.End), ',')
	l = lines.Text(l, r.label)
	l = lines.Text(l, v.Name)
	l = append(strconv.AppendFloat(l, v.Value, 'f', -1, 64), ',')
	l = lines.Integers(l, w.clock.ns(s.End), int64(s.End.Sub(s.Begin)), int64(source), int64(r.cell.ID), int64(r.id))
	l = lines.Text(l, r.source[source].Role)
	l = lines.Text(l, string(s.Edge))
	w.line = lines.End(l)
	w.write(toMetrics, w.line)
}

func (r *Recording) process(source int, s Sample) {
	w := r.w
	src := r.source[source]
	l := append(w.clock.stamp(w.line[:0], s.End), ',')
	l = lines.Text(l, r.label)
	l = lines.Integers(l, int64(src.PID))
	l = mb(l, s.RSS, s.VMS)
	l = lines.Integers(l, w.clock.ns(s.End), int64(s.End.Sub(s.Begin)), int64(source), int64(r.cell.ID), int64(r.id))
	l = lines.Text(l, src.Role)
	l = mb(l, s.PSS, s.USS, s.Swap, s.HWM)
	l = lines.Text(l, string(s.Edge))
	w.line = lines.End(l)
	w.write(toSamples, w.line)
}

// Total writes the sum over an engine's processes at one tick.
func (r *Recording) Total(t Total) {
	w := r.w
	w.mu.Lock()
	defer w.mu.Unlock()
	l := append(w.clock.stamp(w.line[:0], t.End), ',')
	l = lines.Text(l, r.label)
	l = lines.Text(l, t.Method)
	l = lines.Integers(l, int64(t.Processes))
	l = mb(l, t.RSS, t.VMS, t.PSS, t.USS, t.Swap)
	l = lines.Integers(l, w.clock.ns(t.End), int64(t.End.Sub(t.Begin)), int64(r.cell.ID), int64(r.id))
	carried := t.Carried
	if carried == (Carried{}) {
		carried = Carried{Absent, Absent, Absent}
	}
	w.line = lines.End(mb(l, carried.Read, carried.Low, carried.High))
	w.write(toTotals, w.line)
}

// mb appends sizes in MiB, each followed by a comma; an absent one is an empty field.
func mb(line []byte, figures ...int64) []byte {
	for _, bytes := range figures {
		if bytes != Absent {
			line = strconv.AppendFloat(line, float64(bytes)/MiB, 'f', 4, 64)
		}
		line = append(line, ',')
	}
	return line
}

// Log opens logs/<attempt>-<name>.log. If that fails, it warns and discards the log.
func (r *Recording) Log(name string) io.WriteCloser {
	f, err := os.Create(filepath.Join(r.w.dir, logsDir, fmt.Sprintf("%d-%s.log", r.id, name)))
	if err != nil {
		r.Warn(Warnf("no-log", "the output of %s is not kept: %v", name, err))
		return Discard
	}
	return f
}

// Discard is a log that is not kept.
var Discard io.WriteCloser = nowhere{io.Discard}

type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }

// Phase writes a phase that has ended.
func (r *Recording) Phase(p Phase, begin, end time.Time) {
	r.put(entry{Phase: &PhaseSpan{p, r.w.clock.ns(begin), r.w.clock.ns(end)}})
}

// Span writes a load stage.
func (r *Recording) Span(s Span) { r.put(entry{Span: r.span(0, s)}) }

// Event writes an event.
func (r *Recording) Event(e Event) {
	w := r.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Engine != nil {
		r.build.of(r.cell, e.Engine)
	}
	w.putLocked(entry{Attempt: r.id, Event: &e})
}

// Build identifies an engine's program: for those who read run.json alone. The journal has all that it reported.
type Build struct {
	Engine  string `json:"engine"`            // name of the engine, as in the plan
	Version string `json:"version"`           // as the engine reports it
	Commit  string `json:"commit,omitempty"`  // commit of its source; absent: its build does not state one
	Origin  string `json:"origin,omitempty"`  // where its code is from: "built in", npm, a file …
	SHA256  string `json:"sha256,omitempty"`  // SHA-256 of the program
	Library string `json:"library,omitempty"` // SHA-256 of the model library; absent: it has none
}

// of describes what ran in a cell by the last report of it: an engine knows its library once it has a model.
func (b *Build) of(cell Cell, e *EngineInfo) {
	*b = Build{Engine: cell.Engine, Version: e.Version, Commit: e.Commit, Origin: e.Origin, SHA256: e.SHA256}
	if e.Library != nil {
		b.Library = e.Library.SHA256
	}
}

// Warn writes a warning about the attempt.
func (r *Recording) Warn(warning Warning) { r.put(entry{Warning: &warning}) }

// Request writes a request that has returned, with its tokens, and returns it as a reader of the record finds it. due
// is when a request of a traffic was to be sent, and zero if it never waited. Requests are numbered in the order in
// which they return.
func (r *Recording) Request(slot Slot, due time.Time, p Phase, u Usage, tokens []Token, returned time.Time) *Request {
	w := r.w
	if !due.IsZero() {
		slot.Due = w.clock.ns(due)
	}
	if !u.Returned.IsZero() {
		returned = u.Returned
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.requests++
	row := &requestRow{Tokens: len(tokens), Request: Request{ID: r.requests, Phase: p, SentNS: w.clock.ns(u.Sent),
		ReturnedNS: w.clock.ns(returned), PromptIDs: u.PromptIDs, PromptTokens: u.PromptTokens, Generated: u.Generated,
		Text: u.Text, Finish: u.Finish, Reported: u.Reported, Slot: slot}}
	if u.CachedTokens != CacheUnknown {
		row.CachedTokens = &u.CachedTokens
	}
	q := row.request()
	for _, t := range tokens {
		q.Tokens = append(q.Tokens, TokenRow{t.Index, t.ID, w.clock.ns(t.At)})
	}
	for _, t := range q.Tokens {
		w.line = lines.End(lines.Integers(w.line[:0], int64(r.cell.ID), int64(r.id), int64(q.ID), int64(t.Index),
			int64(t.ID), t.NS))
		w.write(toTokens, w.line)
	}
	w.putLocked(entry{Attempt: r.id, Request: row})
	for _, s := range u.Spans {
		line := r.span(q.ID, s)
		w.putLocked(entry{Attempt: r.id, Span: line})
		q.Spans = append(q.Spans, line.NamedSpan)
	}
	return q
}

// Score writes a score.
func (r *Recording) Score(s Score) {
	w := r.w
	w.mu.Lock()
	defer w.mu.Unlock()
	row := func(rank, id int, logProb float64) {
		l := lines.Integers(w.line[:0], int64(r.cell.ID), int64(r.id), int64(s.Position), int64(rank), int64(id))
		if !math.IsNaN(logProb) {
			l = strconv.AppendFloat(l, logProb, 'f', 6, 64)
		}
		l = append(l, ',')
		forced := int64(0)
		if id == s.Forced {
			forced = 1
		}
		w.line = lines.End(lines.Integers(l, forced))
		w.write(toScores, w.line)
	}
	among := false
	for i, c := range s.Top {
		row(i+1, c.ID, c.LogProb)
		among = among || c.ID == s.Forced
	}
	if !among {
		row(0, s.Forced, s.LogProb)
	}
}

// Stolen sets the CPU time in seconds that a hypervisor gave to other machines during the attempt.
func (r *Recording) Stolen(seconds float64) { r.stolen = &seconds }

// End commits the attempt: from here on its rows count and are safe on disk.
func (r *Recording) End(status Status, class Class, err error, cost Cost) {
	w := r.w
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &endEntry{Status: status, Class: class, Cost: cost, Stolen: r.stolen,
		Tokens: []int64{r.tokens, w.files[toTokens].Size() - r.tokens}}
	if err != nil {
		e.Error = err.Error()
	}
	w.ran(r.build)
	w.sync() // the rows before the line that commits them
	w.putLocked(entry{Attempt: r.id, End: e})
	w.sync()
}

// ran keeps a build, once.
func (w *Writer) ran(b Build) {
	if b.Version != "" && !slices.Contains(w.meta.Engines, b) {
		w.meta.Engines = append(w.meta.Engines, b)
	}
}

// Refuse records that a cell can't run here, as an attempt that was never launched. It does not wait for the disk,
// because no measurement could be lost.
func (w *Writer) Refuse(c Cell, class Class, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.begin(c, Beginning{Repetition: 1})
	w.putLocked(entry{Attempt: r.id,
		End: &endEntry{Status: Refused, Class: class, Error: err.Error(), Fault: fault.Of(err)}})
}

func (r *Recording) put(e entry) {
	e.Attempt = r.id
	r.w.put(e)
}

func (r *Recording) span(request int, s Span) *spanLine {
	c := r.w.clock
	return &spanLine{request, NamedSpan{s.Name, c.ns(s.Begin), c.ns(s.End), s.How}}
}
