// Package tables gives what a run read, and what was concluded from it, as tables with typed columns: rows for people's
// own tools. CSV writes one as text; other formats take the same tables.
//
// Rows are made one at a time, so that a long run takes no more memory than the run itself. A table can't say what a
// source can't see: that stands in the record, by the source's number.
package tables

import (
	"fmt"
	"math"
	"time"

	"llmparity/compare"
	"llmparity/internal/record"
)

// Kind is the type of a column's values.
type Kind int

// The kinds. A Time is microseconds since 1970 in UTC.
const (
	Text Kind = iota
	Integer
	Number
	Truth
	Time
)

func (k Kind) String() string { return []string{"text", "integer", "number", "true/false", "time"}[k] }

// Column is a column of a table of an export.
type Column struct {
	Name string
	Kind Kind
	What string // its unit and meaning
}

// Value is a field of a row: that of its column's kind. The zero value is absent, which is neither zero nor an empty
// text.
type Value struct {
	Known  bool
	Text   string
	Int    int64 // of an Integer, a Truth (0 or 1), a Time
	Number float64
	zone   *time.Location // a Time's, where texts are written
}

// Table is a table of an export. Rows hands out one row after another, always in the same slice, until emit gives an
// error.
type Table struct {
	Name    string
	Columns []Column
	Rows    func(emit func([]Value) error) error
}

// Of are the tables of an export: what was concluded, a row a cell, and what was read, as the record has it. Rows are
// made one at a time, so that a long run needs no more memory than it has.
func Of(res *compare.Result, runs ...*record.Run) []Table {
	readings := func(name string, columns []Column, rows func(*attemptView)) Table {
		return Table{name, append(columns, common...), eachAttempt(runs, rows)}
	}
	return []Table{
		summary(res),
		readings("samples", sampleTable(), samples),
		readings("totals", totalTable(), totals),
		readings("tokens", tokenTable(), tokenRows),
		readings("metrics", metricTable(), metrics),
		{"scores", append(scoreTable(), common...), eachScoring(runs)},
	}
}

func text(s string) Value { return Value{Known: true, Text: s} }

// named is a text that is absent where it is empty.
func named(s string) Value { return Value{Known: s != "", Text: s} }

func integer[T int | int64](n T) Value { return Value{Known: true, Int: int64(n)} }

func truth(b bool) Value {
	if b {
		return integer(1)
	}
	return integer(0)
}

// number is absent where it is none.
func number(v float64) Value {
	return Value{Known: !math.IsNaN(v) && !math.IsInf(v, 0), Number: v}
}

// attemptView is an attempt with what its rows have in common.
type attemptView struct {
	run     int
	cell    record.Cell
	a       *record.Attempt
	label   string
	started time.Time
	row     []Value // reused
	emit    func([]Value) error
	err     error // of emit
}

// eachAttempt goes through the attempts of all runs that measure.
func eachAttempt(runs []*record.Run, rows func(*attemptView)) func(func([]Value) error) error {
	return each(runs, func(run *record.Run) []*record.Attempt { return run.Attempts }, rows)
}

// eachScoring goes through the attempts of all runs that score.
func eachScoring(runs []*record.Run) func(func([]Value) error) error {
	return each(runs, func(run *record.Run) []*record.Attempt { return run.Scorings }, scores)
}

func each(runs []*record.Run, of func(*record.Run) []*record.Attempt, rows func(*attemptView)) func(
	func([]Value) error) error {
	return func(emit func([]Value) error) error {
		for i, run := range runs {
			for _, a := range of(run) {
				v := &attemptView{run: i, cell: run.CellByID(a.Cell), a: a, started: run.Meta.Started, emit: emit}
				v.label = fmt.Sprintf("%s-c%d-r%d", v.cell.Engine, v.cell.ID, a.Repetition)
				if a.Warmup {
					v.label = fmt.Sprintf("%s-c%d-warmup", v.cell.Engine, v.cell.ID)
				}
				if rows(v); v.err != nil {
					return v.err
				}
			}
		}
		return nil
	}
}

// add emits a row that ends with the columns in common, unless an earlier row failed.
func (v *attemptView) add(fields ...Value) {
	if v.err == nil {
		v.row = append(append(v.row[:0], fields...), integer(v.run), text(v.cell.Engine), truth(v.a.Counted()))
		v.err = v.emit(v.row)
	}
}

func (v *attemptView) time(ns int64) Value {
	at := v.started.Add(time.Duration(ns))
	return Value{Known: true, Int: at.UnixMicro(), zone: at.Location()}
}

// phase is the one that a reading belongs to: the one that began last before it. The reading at a phase's edge lies
// just behind the phase and is its.
func (v *attemptView) phase(ns int64) Value {
	name := ""
	for _, p := range v.a.Phases {
		if p.BeginNS > ns {
			break
		}
		name = string(p.Name)
	}
	return named(name)
}

// common are the columns that every table of rows ends with.
var common = []Column{{"run", Integer, "the run's number in this export, from 0: that of the result's runs"},
	{"engine", Text, "the cell's engine"},
	{"counted", Truth, "whether the launch succeeded and is not a warm-up, so that statistics use it"}}

var phaseColumn = Column{"phase", Text, "the phase that the reading belongs to"}

func sampleTable() []Column {
	return []Column{
		{"timestamp", Time, "wall-clock time at the start of the run plus t_ns; it never goes backwards"},
		{"label", Text, "engine, cell and repetition: webllm-c1-r2, webllm-c1-warmup"},
		{"pid", Integer, "the process id"},
		{"rss_mb", Number, "MiB: resident set size of this process. A page that n processes share counts in full in each of them. max() of this column is the largest single process, not the engine"},
		{"vms_mb", Number, "MiB: virtual size"},
		{"t_ns", Integer, "nanoseconds from the start of the run to the end of the reading, on the host's monotonic clock"},
		{"read_ns", Integer, "nanoseconds that the reading took"},
		{"source", Integer, "the source's number in journal.jsonl, which has the method and what the method cannot see"},
		{"cell", Integer, "the cell's number"},
		{"attempt", Integer, "the launch's number in the journal"},
		{"role", Text, "renderer, gpu-process, browser, server …; page: a reading of the page's heap"},
		{"pss_mb", Number, "MiB: proportional set size; can be summed over processes"},
		{"uss_mb", Number, "MiB: unique set size, the pages that no other process shares"},
		{"swap_mb", Number, "MiB: swapped out"},
		{"hwm_mb", Number, "MiB: the highest RSS in the phase that the reading ended; if the kernel's mark cannot be reset, the highest since the process began"},
		{"edge", Text, "the phase that ended with this reading; absent between phase edges"},
		{"heap_used_mb", Number, "MiB: the page's JavaScript heap, in rows of its own with the role page. The run folder's samples.csv lacks this column; its metrics.csv has the heap in bytes"},
		phaseColumn,
	}
}

// samples has the heap's readings among those of processes, in order of time.
func samples(v *attemptView) {
	heap := v.a.Metrics
	heapBefore := func(ns int64) {
		for ; len(heap) > 0 && heap[0].NS < ns; heap = heap[1:] {
			if name := heap[0].Name; name == "js_heap_used_bytes" || name == "heap_used_bytes" { // ours, and of others
				v.heap(&heap[0])
			}
		}
	}
	for i := range v.a.Samples {
		s := &v.a.Samples[i]
		heapBefore(s.NS)
		src := v.a.Sources[s.Source]
		v.add(v.time(s.NS), text(v.label), integer(src.PID), number(s.RSS), number(s.VMS), integer(s.NS),
			integer(s.ReadNS), integer(s.Source), integer(v.a.Cell), integer(v.a.ID), text(src.Role), number(s.PSS),
			number(s.USS), number(s.Swap), number(s.HWM), named(string(s.Edge)), Value{}, v.phase(s.NS))
	}
	heapBefore(math.MaxInt64)
}

func (v *attemptView) heap(m *record.MetricRow) {
	src := v.a.Sources[m.Source]
	v.add(v.time(m.NS), text(v.label), integer(src.PID), Value{}, Value{}, integer(m.NS),
		integer(m.ReadNS), integer(m.Source),
		integer(v.a.Cell), integer(v.a.ID), text(src.Role), Value{}, Value{}, Value{}, Value{}, named(string(m.Edge)),
		number(m.Value/record.MiB), v.phase(m.NS))
}

func totalTable() []Column {
	return []Column{
		{"timestamp", Time, "as in samples"},
		{"label", Text, "as in samples"},
		{"method", Text, "how the processes were read: statm (RSS, often), smaps_rollup (PSS and USS, less often) or vm_hwm (a peak between two readings, from the kernel's marks)"},
		{"processes", Integer, "the number of processes in the sums: all processes of the engine at this time"},
		{"rss_sum_mb", Number, "MiB: the sum of the processes' RSS; shared pages count once for each process. max() is the engine's peak by this measure"},
		{"vms_sum_mb", Number, "MiB: the sum of the virtual sizes"},
		{"pss_mb", Number, "MiB: the sum of PSS, in which a page counts once. Reports call this total memory. Rows of smaps_rollup read it; other rows carry it forward"},
		{"uss_mb", Number, "MiB: the sum of USS, read or carried forward like pss_mb"},
		{"swap_mb", Number, "MiB: the sum of what is swapped out"},
		{"t_ns", Integer, "as in samples, after the last process was read"},
		{"read_ns", Integer, "nanoseconds from the start of the first reading to the end of the last"},
		{"cell", Integer, "as in samples"},
		{"attempt", Integer, "as in samples"},
		{"pss_read_mb", Number, "MiB: the reading of PSS that pss_mb was carried forward from; absent where pss_mb was read"},
		{"pss_low_mb", Number, "MiB: the lower bound of a pss_mb that was carried forward"},
		{"pss_high_mb", Number, "MiB: its upper bound"},
		phaseColumn,
	}
}

func totals(v *attemptView) {
	for i := range v.a.Totals {
		t := &v.a.Totals[i]
		v.add(v.time(t.NS), text(v.label), text(t.Method), integer(t.Processes), number(t.RSS),
			number(t.VMS), number(t.PSS), number(t.USS), number(t.Swap),
			integer(t.NS), integer(t.ReadNS), integer(v.a.Cell), integer(v.a.ID), number(t.Read), number(t.Low),
			number(t.High), v.phase(t.NS))
	}
}

func tokenTable() []Column {
	return []Column{
		{"cell", Integer, "as in samples"},
		{"attempt", Integer, "as in samples"},
		{"request", Integer, "the request's number in its attempt, from 1"},
		{"index", Integer, "the token's place in the answer, from 0"},
		{"id", Integer, "the token's id; -1 if the engine reports none, or if rows are pieces of text"},
		{"t_ns", Integer, "nanoseconds from the start of the run until the token was sampled, or until its piece of text arrived"},
		{"phase", Text, "the phase that the request belongs to: warmup or measure"},
		{"sent_ns", Integer, "nanoseconds from the start of the run until the request left the host"},
	}
}

func tokenRows(v *attemptView) {
	for _, r := range v.a.Requests {
		for _, t := range r.Tokens {
			v.add(integer(v.a.Cell), integer(v.a.ID), integer(r.ID), integer(t.Index),
				integer(t.ID), integer(t.NS), text(string(r.Phase)), integer(r.SentNS))
		}
	}
}

func metricTable() []Column {
	return []Column{
		{"timestamp", Time, "as in samples"},
		{"label", Text, "as in samples"},
		{"name", Text, "what was read; it ends in its unit: _bytes, _count, _ms, _percent, _watts …"},
		{"value", Number, "in that unit"},
		{"t_ns", Integer, "as in samples"},
		{"read_ns", Integer, "as in samples; for sources that wait for an answer, mostly waiting"},
		{"source", Integer, "as in samples"},
		{"cell", Integer, "as in samples"},
		{"attempt", Integer, "as in samples"},
		{"role", Text, "as in samples"},
		{"edge", Text, "as in samples"},
		phaseColumn,
		{"method", Text, "how the value was read: heap_usage, webgpu_ledger, nvml …"},
	}
}

func metrics(v *attemptView) {
	for i := range v.a.Metrics {
		m := &v.a.Metrics[i]
		src := v.a.Sources[m.Source]
		v.add(v.time(m.NS), text(v.label), text(m.Name), number(m.Value), integer(m.NS),
			integer(m.ReadNS), integer(m.Source),
			integer(v.a.Cell), integer(v.a.ID), text(src.Role), named(string(m.Edge)), v.phase(m.NS), text(src.Method))
	}
}

func scoreTable() []Column {
	return []Column{
		{"cell", Integer, "as in samples"},
		{"attempt", Integer, "as in samples; a scored text, or a window of one, is an attempt of its own"},
		{"position", Integer, "the forced token's place in the text, from 0"},
		{"rank", Integer, "the candidate's rank, from 1, the likeliest; 0: the forced token, which is not among the candidates"},
		{"id", Integer, "the candidate's token id"},
		{"logprob", Number, "nats: its log-probability; absent if it is too small for the engine to report"},
		{"forced", Integer, "1 if it is the forced token, else 0"},
	}
}

func scores(v *attemptView) {
	for _, s := range v.a.Scores {
		among := false
		row := func(rank int, c record.Candidate) {
			forced := c.ID == s.Forced
			among = among || forced
			v.add(integer(v.a.Cell), integer(v.a.ID), integer(s.Position), integer(rank), integer(c.ID),
				number(c.LogProb), truth(forced))
		}
		for i, c := range s.Top {
			row(i+1, c)
		}
		if !among {
			row(0, record.Candidate{ID: s.Forced, LogProb: s.LogProb})
		}
	}
}
