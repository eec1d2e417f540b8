package record

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/check"
	"llmparity/internal/fault"
)

var cell = Cell{ID: 1, Engine: "webllm", Prompt: "hello", MaxTokens: 3, Repetitions: 1}

// write records an attempt with everything in it and returns the time used.
func write(w *Writer, repetition int) time.Time {
	at := time.Now()
	r := w.Begin(cell, Beginning{Repetition: repetition, Warmup: repetition == 0, Load1: 0.5})
	statm := r.Source(Source{Role: "renderer", Method: "statm", PID: 42, Start: 7, Every: time.Second})
	s := NewSample()
	s.Begin, s.End, s.RSS, s.VMS = at, at.Add(time.Microsecond), 3*MiB, 4*MiB
	r.Sample(statm, s)
	heap := r.Source(Source{Role: "page", Method: "heap", Waits: true})
	v := NewSample()
	v.Begin, v.End, v.Edge = at, at.Add(2*time.Microsecond), Load
	v.Values = []Value{{Name: "used_bytes", Value: 1<<40 + 1}, {Name: "delay_ms", Value: 0.125},
		{Name: "unknown_bytes", Value: math.NaN()}}
	r.Sample(heap, v)
	v.HWM, v.Values = 5*MiB, nil
	r.Sample(statm, v)
	r.Total(Total{Sample: s, Method: "statm", Processes: 1})
	r.Phase(Load, at, at.Add(time.Second))
	r.Span(Span{Name: "fetch", Begin: at, End: at.Add(time.Millisecond), How: "progress"})
	r.Event(Event{Device: &Device{Class: CPU, Name: "a CPU"}})
	r.Warn(Warning{Code: "a", Text: "b"})
	r.Request(Measure, Usage{PromptIDs: []int{5, 6}, Text: "abc", Finish: "length", Sent: at,
		Spans: []Span{{Name: Prefill, Begin: at, End: at.Add(time.Millisecond)}}},
		[]Token{{Index: 0, ID: 9, At: at.Add(time.Millisecond)},
			{Index: 1, ID: 8, At: at.Add(2 * time.Millisecond)}}, at.Add(time.Second))
	r.End(OK, "", nil, Cost{Reads: 1, ReadNS: 1000})
	return at
}

func TestRoundTrip(t *testing.T) {
	w := made(t, cell)
	write(w, 0)
	write(w, 1)
	w.Warn(Warning{Code: "noisy", Text: "run"})
	r := ended(t, w, OK)
	if r.Status != OK || len(r.Attempts) != 2 || len(r.Warnings) != 1 ||
		!reflect.DeepEqual(r.Cells, []Cell{cell}) {
		t.Fatalf("run: %+v", r)
	}
	if r.Attempts[0].Counted() || !r.Attempts[1].Counted() {
		t.Error("only repetitions count")
	}
	a := r.Attempts[1]
	if d, ok := a.Device(); !ok || d.Name != "a CPU" {
		t.Errorf("device: %+v", d)
	}
	q := a.Measured()[0]
	if len(q.Tokens) != 2 || q.Tokens[0].ID != 9 || q.Tokens[1].NS-q.Tokens[0].NS != 1e6 ||
		!reflect.DeepEqual(q.PromptIDs, []int{5, 6}) {
		t.Errorf("request: %+v", q)
	}
	if span, ok := q.Span(Prefill); !ok || span.Duration() != time.Millisecond {
		t.Errorf("prefill: %+v", span)
	}
	s := a.Samples[0]
	if s.RSS != 3 || s.VMS != 4 || !math.IsNaN(s.PSS) || a.Sources[s.Source].Role != "renderer" || s.ReadNS != 1000 {
		t.Errorf("sample: %+v", s)
	}
	if len(a.Samples) != 2 || a.Samples[1].Edge() != Load || s.Edge() != "" ||
		a.PeakRSS(Load)[a.Samples[1].Source] != 5 {
		t.Errorf("samples: %+v", a.Samples)
	}
	used := a.AtEdge(Load, "heap", "used_bytes")
	if len(a.Metrics) != 2 || a.Metrics[1].Name != "delay_ms" || a.Metrics[1].Value != 0.125 ||
		a.Metrics[0].ReadNS != 2000 ||
		len(used) != 1 || used[a.Metrics[0].Source] != 1<<40+1 || !a.Sources[a.Metrics[0].Source].Waits {
		t.Errorf("values: %+v", a.Metrics)
	}
	if a.Totals[0].RSS != 3 || a.Totals[0].Method != "statm" || !math.IsNaN(a.Totals[0].USS) {
		t.Errorf("total: %+v", a.Totals[0])
	}
	if load, ok := a.Phase(Load); !ok || load.Duration() != time.Second || a.Stages[0].Name != "fetch" {
		t.Errorf("load: %+v %+v", load, a.Stages)
	}
}

func TestSamplesStartWithPublishedColumns(t *testing.T) {
	w := made(t, cell)
	write(w, 1)
	closed(t, w, OK)
	text := contents(t, filepath.Join(w.Dir(), "samples.csv"))
	lines := strings.Split(string(text), "\n")
	if !strings.HasPrefix(lines[0], "timestamp,label,pid,rss_mb,vms_mb,") {
		t.Errorf("header: %s", lines[0])
	}
	fields := strings.Split(lines[1], ",")
	if _, err := time.Parse(time.RFC3339Nano, fields[0]); err != nil {
		t.Error(err)
	}
	if got := strings.Join(fields[1:5], " "); got != "webllm-c1-r1 42 3.0000 4.0000" {
		t.Errorf("row: %s", lines[1])
	}
}

func TestMain(m *testing.M) {
	if root := os.Getenv(asResumer); root != "" {
		if err := resumeOrBegin(root); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestOpenReadsFilesCutAnywhere(t *testing.T) {
	w := made(t, cell)
	write(w, 1)
	closed(t, w, OK)
	for _, name := range []string{"journal.jsonl", "samples.csv", "tokens.csv", "totals.csv", "metrics.csv"} {
		path := filepath.Join(w.Dir(), name)
		whole := contents(t, path)
		for n := 0; n < len(whole); n += 5 {
			put(t, path, whole[:n])
			if _, err := Open(w.Dir()); err != nil {
				t.Fatalf("%s cut at byte %d: %v", name, n, err)
			}
		}
		put(t, path, whole)
	}
}

func TestOpenNamesInvalidFiles(t *testing.T) {
	w := made(t, cell)
	write(w, 1)
	closed(t, w, OK)
	change := func(file, old, new string) string { return changed(t, w.dir, file, replaced(old, new)) }
	for _, c := range []struct{ dir, want string }{
		{t.TempDir(), "not a run folder"},
		{change("run.json", Schema, "llmparity.run/99"), "llmparity.run/99"},
		{change("samples.csv", "3.0000", "abc"), "samples.csv line 2"},
		{change("samples.csv", "3.0000", "NaN"), "samples.csv line 2"},
		{change("samples.csv", "3.0000,", ""), "samples.csv line 2"},
		{change("metrics.csv", "0.125", "NaN"), "metrics.csv line 3"},
		{change("metrics.csv", "0.125", "many"), "metrics.csv line 3"},
		{change("journal.jsonl", `"attempt":1`, `"attempt":7`), "journal.jsonl line"},
	} {
		_, err := Open(c.dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.Of(err) != fault.BadRecord {
			t.Errorf("%v (class %s), want %q", err, fault.Of(err), c.want)
		}
	}
}

// Older runs have no metrics.csv and no column edge.
func TestOpenReadsOlderRuns(t *testing.T) {
	w := made(t, cell)
	write(w, 1)
	closed(t, w, OK)
	dir := changed(t, w.dir, samplesFile, func(text string) string {
		var old strings.Builder
		for line := range strings.Lines(text) {
			old.WriteString(line[:strings.LastIndex(line, ",")] + "\n")
		}
		return old.String()
	})
	check.Err(t, os.Remove(filepath.Join(dir, metricsFile)))
	r, err := Open(dir)
	check.Err(t, err)
	if a := r.Attempts[0]; len(a.Samples) != 2 || len(a.Metrics) != 0 || len(a.PeakRSS(Load)) != 0 {
		t.Errorf("%+v", a)
	}
}

func TestCreateNamesUnwritableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, nil)
	_, err := Create(filepath.Join(file, "results"), Meta{Name: "x", Started: time.Now()},
		Environment{}, nil)
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Unwritable {
		t.Errorf("%v, want a fault of kind Unwritable", err)
	}
}

func FuzzOpen(f *testing.F) {
	w := made(f, cell)
	write(w, 1)
	closed(f, w, OK)
	of := func(file string) []byte { return contents(f, filepath.Join(w.dir, file)) }
	f.Add(of(journalFile), of(samplesFile), of(metricsFile))
	f.Add([]byte(`{"attempt":1,"begin":{"cell":1}}`+"\n"), []byte("a,\"b\"\"\n"), []byte("t_ns,value\n1,1e999\n"))
	f.Fuzz(func(t *testing.T, journal, samples, metrics []byte) {
		dir := t.TempDir()
		copied(t, dir, w.Dir())
		put(t, filepath.Join(dir, journalFile), journal)
		put(t, filepath.Join(dir, samplesFile), samples)
		put(t, filepath.Join(dir, metricsFile), metrics)
		r, err := Open(dir)
		if err != nil && fault.Of(err) != fault.BadRecord {
			t.Errorf("class is not BadRecord: %v", err)
		}
		if err == nil {
			for _, a := range r.Attempts {
				a.Measured()
			}
		}
	})
}

func TestCachedTokens(t *testing.T) {
	w := made(t, Cell{ID: 1})
	a := w.Begin(Cell{ID: 1}, Beginning{Repetition: 1})
	want := []int{0, 3, CacheUnknown}
	for _, n := range want {
		a.Request(Measure, Usage{CachedTokens: n, Sent: time.Now()}, nil, time.Now())
	}
	a.End(OK, "", nil, Cost{})
	r := ended(t, w, OK)
	var got []int
	for _, q := range r.Attempts[0].Requests {
		got = append(got, q.CachedTokens)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v were written, %v are read", want, got)
	}
	journal, err := os.ReadFile(filepath.Join(w.Dir(), "journal.jsonl"))
	if err != nil || strings.Count(string(journal), `"cached_tokens"`) != 2 {
		t.Errorf("%v: %s", err, journal)
	}
}

func TestSharedSessionsNeedTheSameSetup(t *testing.T) {
	own := Cell{ID: 1, Engine: "e", Isolation: OfLaunch, Reused: true, NoTokenIDs: true}
	other := Cell{ID: 2, Engine: "f"}
	shared := Cell{ID: 3, Engine: "a", Setup: 1, Shared: true}
	beside, elsewhere := shared, shared
	beside.ID, elsewhere.ID, elsewhere.Setup = 4, 5, 2
	for _, c := range []struct {
		opens, continues Cell
		may              bool
	}{{own, own, true}, {own, other, false}, {shared, beside, true}, {shared, elsewhere, false}} {
		w := made(t, own, other, shared, beside, elsewhere)
		first := w.Begin(c.opens, Beginning{Repetition: 1})
		first.End(OK, "", nil, Cost{})
		w.Begin(c.continues, Beginning{Repetition: 2, OpenedBy: first.ID()}).End(OK, "", nil, Cost{})
		closed(t, w, OK)
		r, err := Open(w.Dir())
		if !c.may {
			if err == nil || !strings.Contains(err.Error(), "continues in a session of another cell") {
				t.Errorf("cell %d in the session of cell %d: %v", c.continues.ID, c.opens.ID, err)
			}
			continue
		}
		check.Err(t, err)
		if a, b := r.Attempts[0], r.Attempts[1]; a.OpenedBy != 0 || a.Launch() != a || b.OpenedBy != a.ID ||
			b.Launch() != a || b.Repetition != 2 || r.CellByID(c.opens.ID) != c.opens {
			t.Errorf("%+v and %+v of %+v", a, b, r.Cells)
		}
	}
}
