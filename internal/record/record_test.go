package record

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/lines"
)

var cell = Cell{ID: 1, Engine: "webllm", Prompt: "hello", MaxTokens: 3, Repetitions: 1}

// write records an attempt with everything in it and returns the time used.
func write(w *Writer, repetition int) time.Time {
	at := time.Now()
	r := w.Begin(cell, Beginning{Repetition: repetition, Warmup: repetition == 0,
		Machine: &MachineState{Load1: 0.5, Governor: "powersave"}})
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
	r.Request(Slot{}, time.Time{}, Measure, Usage{PromptIDs: []int{5, 6}, Text: "abc", Finish: "length", Sent: at,
		Spans: []Span{{Name: Prefill, Begin: at, End: at.Add(time.Millisecond)}}},
		[]Token{{Index: 0, ID: 9, At: at.Add(time.Millisecond)},
			{Index: 1, ID: 8, At: at.Add(2 * time.Millisecond)}}, at.Add(time.Second))
	r.Request(Slot{Client: 2, Kind: "short", Turn: 3}, at, Measure, Usage{Sent: at.Add(time.Second),
		CachedTokens: CacheUnknown}, nil, at.Add(2*time.Second))
	if repetition == 1 {
		r.Stolen(0.25)
	}
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
	if of := a.Measured()[1]; q.CachedTokens != 0 || of.CachedTokens != CacheUnknown || of.Client != 2 ||
		of.Kind != "short" || of.Turn != 3 || of.SentNS-of.Due != int64(time.Second) {
		t.Errorf("request of a traffic: %+v", of)
	}
	if r.Attempts[0].StolenS != nil || *a.StolenS != 0.25 || a.Machine.Governor != "powersave" || a.Load1 != 0.5 {
		t.Errorf("machine: %+v", a)
	}
	if span, ok := q.Span(Prefill); !ok || span.EndNS-span.BeginNS != int64(time.Millisecond) {
		t.Errorf("prefill: %+v", span)
	}
	s := a.Samples[0]
	if s.RSS != 3 || s.VMS != 4 || !math.IsNaN(s.PSS) || a.Sources[s.Source].Role != "renderer" || s.ReadNS != 1000 {
		t.Errorf("sample: %+v", s)
	}
	if len(a.Samples) != 2 || a.Samples[1].Edge != Load || s.Edge != "" || a.Samples[1].HWM != 5 {
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
	check.Err(t, w.Close(OK))
	text := check.Read(t, filepath.Join(w.Dir(), "samples.csv"))
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

func TestOpenReadsFilesCutAnywhere(t *testing.T) {
	w := made(t, cell)
	write(w, 1)
	check.Err(t, w.Close(OK))
	for _, name := range []string{"journal.jsonl", "samples.csv", "tokens.csv", "totals.csv", "metrics.csv"} {
		path := filepath.Join(w.Dir(), name)
		whole := check.Read(t, path)
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
	check.Err(t, w.Close(OK))
	change := func(file, old, new string) string { return changed(t, w.dir, file, replaced(old, new)) }
	for _, c := range []struct{ dir, want string }{
		{t.TempDir(), "not a run folder"},
		{change("run.json", Schema, "llmparity.run/99"), `"llmparity.run/99" (this version reads`},
		{change("run.json", Schema, "llmparity.run/1.1"), `"llmparity.run/1.1" (this version reads`},
		{change("samples.csv", ",edge", ",phase"), `samples.csv line 2: missing column "edge"`},
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

// FuzzOpen checks that errors have a class, and that all scores are complete, in order, and have two candidates.
func FuzzOpen(f *testing.F) {
	from := scored(f, 3, OK)
	of := func(file string) []byte { return check.Read(f, filepath.Join(from, file)) }
	const scores = "attempt,position,rank,id,logprob,forced\n"
	f.Add(of(JournalFile), of(samplesFile), of(metricsFile), of(scoresFile), []byte(`{"7":" sky"}`))
	f.Add([]byte(`{"attempt":1,"begin":{"cell":1}}`+"\n"), []byte("a,\"b\"\"\n"), []byte("t_ns,value\n1,1e999\n"),
		[]byte(scores+"2,0,1,7,-1e999,1\n"), []byte(`{"7":`))
	f.Add(of(JournalFile), of(samplesFile), of(metricsFile), []byte(scores+"2,-1,1,7,NaN,1\n"), []byte(`[]`))
	f.Fuzz(func(t *testing.T, journal, samples, metrics, scores, pieces []byte) {
		dir := t.TempDir()
		check.Err(t, os.CopyFS(dir, os.DirFS(from)))
		for name, text := range map[string][]byte{JournalFile: journal, samplesFile: samples, metricsFile: metrics,
			scoresFile: scores, piecesFile: pieces} {
			put(t, filepath.Join(dir, name), text)
		}
		r, err := Open(dir)
		if err != nil {
			if fault.Of(err) != fault.BadRecord {
				t.Errorf("class is not BadRecord: %v", err)
			}
			return
		}
		for _, a := range r.Scorings {
			for i, s := range a.Scores {
				if err := s.Sound(); err != nil || s.Position != i || len(a.Scores) != a.Scoring.Tokens ||
					!(s.Margin() >= 0) {
					t.Errorf("%v: %+v", err, s)
				}
			}
		}
	})
}

// /dev/full is a full disk.
func TestFullDiskErrorSticks(t *testing.T) {
	w := made(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	w.mu.Lock()
	_ = w.files[toSamples].Close()
	w.files[toSamples] = lines.To(full)
	w.mu.Unlock()

	c := Cell{ID: 1}
	w.Cell(c)
	r := w.Begin(c, Beginning{Repetition: 1})
	s := NewSample()
	s.RSS = 1
	r.Sample(r.Source(Source{}), s)
	r.End(OK, "", nil, Cost{})
	select {
	case <-w.Failed():
	case <-time.After(10 * time.Second):
		t.Fatal("a failed write is not reported")
	}
	err = w.Close(OK)
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.DiskFull {
		t.Errorf("%v, want a fault of kind DiskFull", err)
	}
	got, err := Open(w.Dir())
	if err != nil {
		t.Fatalf("the folder can't be read: %v", err)
	}
	if len(got.Attempts) > 0 && got.Attempts[0].Counted() {
		t.Error("an attempt without its rows counts")
	}
}

func TestPredictionsAndRisksRoundTrip(t *testing.T) {
	w := made(t)
	p := Prediction{Cell: 2, Source: "gguf", Setup: map[string]string{"context": "512"}, TokenB: 9,
		Parts: []Predicted{{Name: "model_weights", Low: 1, Best: 2, High: 3, DType: "f32", Method: "its tensors",
			Confidence: "high"}}}
	r := Risk{Cell: 1, Level: RiskHigh, Refused: true, Reasons: []string{"too much"},
		Places: []Place{{Name: "ram", Need: 5, High: 6, Free: 4, Level: RiskHigh, How: "counted"}}}
	w.Cell(Cell{ID: 1})
	w.Cell(Cell{ID: 2})
	w.Predict(p)
	w.Risk(r)
	got := ended(t, w, OK)
	if !reflect.DeepEqual(got.Predictions, map[int]Prediction{2: p}) ||
		!reflect.DeepEqual(got.Risks, map[int]Risk{1: r}) {
		t.Errorf("read %+v and %+v", got.Predictions, got.Risks)
	}
	if part, ok := got.Predictions[2].Part("model_weights"); !ok || part.Best != 2 {
		t.Errorf("part: %+v", part)
	}
}

func TestRefusedCellIsAnAttempt(t *testing.T) {
	w := made(t, resumed)
	w.Refuse(resumed, SetUp, fault.New(fault.NoPython, "", "no Python"))
	r := ended(t, w, Failed)
	a := r.Attempts[0]
	if a.Status != Refused || a.Class != SetUp || a.Fault != fault.NoPython || a.Error != "no Python" {
		t.Errorf("%+v", a)
	}
}

func TestChangedMachineStateWarns(t *testing.T) {
	for name, c := range map[string]struct {
		states []MachineState
		want   []string
	}{
		"another governor, limit and heat": {[]MachineState{
			{Governor: "performance", MaxMHz: 4000, Throttled: new(int64(7))},
			{Governor: "performance", MaxMHz: 4000, Throttled: new(int64(7))}, {},
			{Governor: "powersave", MaxMHz: 2000, Throttled: new(int64(10))},
			{Governor: "powersave", MaxMHz: 2000, Throttled: new(int64(0))}}, // rebooted
			[]string{"performance from attempt 1, powersave from attempt 4",
				"4000 MHz from attempt 1, 2000 MHz from attempt 4",
				"(events: 3; intervals between launches with events: 1, first between attempts 2 and 4)"}},
		"a frequency that moves within its limit": {[]MachineState{
			{Governor: "performance", MHz: 1, Throttled: new(int64(7))},
			{Governor: "performance", MHz: 2, Throttled: new(int64(7))}}, nil},
	} {
		w := made(t, resumed)
		for i, m := range c.states {
			w.Begin(resumed, Beginning{Repetition: i + 1, Machine: &m}).End(OK, "", nil, Cost{})
		}
		r := ended(t, w, OK)
		if len(r.Warnings) != len(c.want) {
			t.Fatalf("%s: %+v", name, r.Warnings)
		}
		for i, want := range c.want {
			if !strings.Contains(r.Warnings[i].Text, want) {
				t.Errorf("%s: %s: want %s", name, r.Warnings[i].Text, want)
			}
		}
	}
}
