package record_test

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

func create(t *testing.T, root string) *record.Writer {
	t.Helper()
	w, err := record.Create(root, record.Meta{Name: "test", Started: time.Now()},
		record.Environment{OS: "test", Cores: 2}, []byte("name: test\n"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

var cell = record.Cell{ID: 1, Engine: "webllm", Prompt: "hello", MaxTokens: 3, Repetitions: 1}

// write records an attempt with everything in it and gives the times used.
func write(w *record.Writer, repetition int) time.Time {
	at := time.Now()
	r := w.Begin(cell, record.Beginning{Repetition: repetition, Warmup: repetition == 0, Load1: 0.5})
	statm := r.Source(record.Source{Role: "renderer", Method: "statm", PID: 42, Start: 7, Every: time.Second})
	s := record.NewSample()
	s.Begin, s.End, s.RSS, s.VMS = at, at.Add(time.Microsecond), 3*record.MiB, 4*record.MiB
	r.Sample(statm, s)
	heap := r.Source(record.Source{Role: "page", Method: "heap", Waits: true})
	v := record.NewSample()
	v.Begin, v.End, v.Edge = at, at.Add(2*time.Microsecond), record.Load
	v.Values = []record.Value{{Name: "used_bytes", Value: 1<<40 + 1}, {Name: "delay_ms", Value: 0.125},
		{Name: "unknown_bytes", Value: math.NaN()}}
	r.Sample(heap, v)
	v.HWM, v.Values = 5*record.MiB, nil
	r.Sample(statm, v)
	r.Total(record.Total{Sample: s, Method: "statm", Processes: 1})
	r.Phase(record.Load, at, at.Add(time.Second))
	r.Span(record.Span{Name: "fetch", Begin: at, End: at.Add(time.Millisecond), How: "progress"})
	r.Event(record.Event{Device: &record.Device{Class: record.CPU, Name: "a CPU"}})
	r.Warn(record.Warning{Code: "a", Text: "b"})
	r.Request(record.Measure, record.Usage{PromptIDs: []int{5, 6}, Text: "abc", Finish: "length", Sent: at,
		Spans: []record.Span{{Name: record.Prefill, Begin: at, End: at.Add(time.Millisecond)}}},
		[]record.Token{{Index: 0, ID: 9, At: at.Add(time.Millisecond)},
			{Index: 1, ID: 8, At: at.Add(2 * time.Millisecond)}}, at.Add(time.Second))
	r.End(record.OK, "", nil, record.Cost{Reads: 1, ReadNS: 1000})
	return at
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	root := t.TempDir()
	w := create(t, root)
	w.Cell(cell)
	write(w, 0)
	write(w, 1)
	w.Warn(record.Warning{Code: "noisy", Text: "run"})
	if err := w.Close(record.OK); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(filepath.Join(root, "latest"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != record.OK || len(r.Attempts) != 2 || len(r.Warnings) != 1 ||
		!reflect.DeepEqual(r.Cells, []record.Cell{cell}) {
		t.Fatalf("run: %+v", r)
	}
	if r.Attempts[0].Counted() || !r.Attempts[1].Counted() {
		t.Error("a warm-up launch counts, or a repetition does not")
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
	if span, ok := q.Span(record.Prefill); !ok || span.Duration() != time.Millisecond {
		t.Errorf("prefill: %+v", span)
	}
	s := a.Samples[0]
	if s.RSS != 3 || s.VMS != 4 || !math.IsNaN(s.PSS) || a.Sources[s.Source].Role != "renderer" || s.ReadNS != 1000 {
		t.Errorf("sample: %+v", s)
	}
	if len(a.Samples) != 2 || a.Samples[1].Edge() != record.Load || s.Edge() != "" ||
		a.PeakRSS(record.Load)[a.Samples[1].Source] != 5 {
		t.Errorf("samples: %+v; a reading of values alone is none", a.Samples)
	}
	used := a.AtEdge(record.Load, "heap", "used_bytes")
	if len(a.Metrics) != 2 || a.Metrics[1].Name != "delay_ms" || a.Metrics[1].Value != 0.125 ||
		a.Metrics[0].ReadNS != 2000 ||
		len(used) != 1 || used[a.Metrics[0].Source] != 1<<40+1 || !a.Sources[a.Metrics[0].Source].Waits {
		t.Errorf("values: %+v", a.Metrics)
	}
	if a.Totals[0].RSS != 3 || a.Totals[0].Method != "statm" || !math.IsNaN(a.Totals[0].USS) {
		t.Errorf("total: %+v", a.Totals[0])
	}
	if load, ok := a.Phase(record.Load); !ok || load.Duration() != time.Second || a.Stages[0].Name != "fetch" {
		t.Errorf("load: %+v %+v", load, a.Stages)
	}
}

func TestSamplesBeginWithTheKnownColumns(t *testing.T) {
	root := t.TempDir()
	w := create(t, root)
	w.Cell(cell)
	write(w, 1)
	if err := w.Close(record.OK); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(w.Dir(), "samples.csv"))
	if err != nil {
		t.Fatal(err)
	}
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

// asWriter makes the test binary write attempts until it is killed.
const asWriter = "RECORD_TEST_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(asResumer); root != "" {
		if err := resumeOrBegin(root); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if root := os.Getenv(asWriter); root != "" {
		w, err := record.Create(root, record.Meta{Name: "killed", Started: time.Now()}, record.Environment{}, nil)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		w.Cell(cell)
		for n := 1; ; n++ {
			write(w, n)
			fmt.Println(n)
		}
	}
	os.Exit(m.Run())
}

func TestEveryCommittedAttemptSurvivesAKill(t *testing.T) {
	for _, after := range []int{0, 1, 5, 20} {
		root := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asWriter+"="+root)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		committed := 0
		lines := bufio.NewScanner(out)
		for committed < after && lines.Scan() {
			committed++
		}
		if after == 0 {
			for {
				if _, err := os.Stat(filepath.Join(root, "latest")); err == nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as it should be

		r, err := record.Open(filepath.Join(root, "latest"))
		if err != nil {
			t.Fatalf("after %d attempts: %v", after, err)
		}
		whole := 0
		for _, a := range r.Attempts {
			if a.Counted() {
				whole++
				if len(a.Samples) != 2 || len(a.Metrics) != 2 || len(a.Requests) != 1 ||
					len(a.Requests[0].Tokens) != 2 {
					t.Errorf("attempt %d was committed without its rows: %+v", a.ID, a)
				}
			}
		}
		if whole < committed || r.Status != record.Interrupted {
			t.Errorf("%d attempts of %d acknowledged; status %s", whole, committed, r.Status)
		}
	}
}

func TestCutAnywhereIsReadable(t *testing.T) {
	root := t.TempDir()
	w := create(t, root)
	w.Cell(cell)
	write(w, 1)
	if err := w.Close(record.OK); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"journal.jsonl", "samples.csv", "tokens.csv", "totals.csv", "metrics.csv"} {
		path := filepath.Join(w.Dir(), name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(whole); n += 5 {
			if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := record.Open(w.Dir()); err != nil {
				t.Fatalf("%s cut at byte %d: %v", name, n, err)
			}
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBadFoldersAreNamed(t *testing.T) {
	good := t.TempDir()
	w := create(t, good)
	w.Cell(cell)
	write(w, 1)
	if err := w.Close(record.OK); err != nil {
		t.Fatal(err)
	}
	change := func(file, old, new string) string {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(w.Dir())); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), old) {
			t.Fatalf("%s has no %q: %v", file, old, err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(strings.Replace(string(text), old, new, 1)),
			0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for _, c := range []struct{ dir, want string }{
		{t.TempDir(), "not a run folder"},
		{change("run.json", record.Schema, "llmparity.run/99"), "llmparity.run/99"},
		{change("samples.csv", "3.0000", "abc"), "samples.csv line 2"},
		{change("samples.csv", "3.0000", "NaN"), "samples.csv line 2"},
		{change("samples.csv", "3.0000,", ""), "samples.csv line 2"},
		{change("metrics.csv", "0.125", "NaN"), "metrics.csv line 3"},
		{change("metrics.csv", "0.125", "many"), "metrics.csv line 3"},
		{change("journal.jsonl", `"attempt":1`, `"attempt":7`), "journal.jsonl line"},
	} {
		_, err := record.Open(c.dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.Of(err) != fault.BadRecord {
			t.Errorf("%v (class %s), want %q", err, fault.Of(err), c.want)
		}
	}
}

// Runs of before there were values have no metrics.csv, and no column that tells of phase edges.
func TestOlderRunsAreRead(t *testing.T) {
	w := create(t, t.TempDir())
	w.Cell(cell)
	write(w, 1)
	if err := w.Close(record.OK); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.Dir(), "metrics.csv")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.Dir(), "samples.csv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var old strings.Builder
	for line := range strings.Lines(string(text)) {
		old.WriteString(line[:strings.LastIndex(line, ",")] + "\n")
	}
	if err := os.WriteFile(path, []byte(old.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Attempts[0]; len(a.Samples) != 2 || len(a.Metrics) != 0 || len(a.PeakRSS(record.Load)) != 0 {
		t.Errorf("%+v", a)
	}
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := record.Create(filepath.Join(file, "results"), record.Meta{Name: "x", Started: time.Now()},
		record.Environment{}, nil)
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Unwritable {
		t.Errorf("%v, want a fault of kind Unwritable", err)
	}
}

func FuzzOpen(f *testing.F) {
	root := f.TempDir()
	w, err := record.Create(root, record.Meta{Name: "fuzz", Started: time.Now()}, record.Environment{}, nil)
	if err != nil {
		f.Fatal(err)
	}
	w.Cell(cell)
	write(w, 1)
	if err := w.Close(record.OK); err != nil {
		f.Fatal(err)
	}
	journal, err := os.ReadFile(filepath.Join(w.Dir(), "journal.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	samples, err := os.ReadFile(filepath.Join(w.Dir(), "samples.csv"))
	if err != nil {
		f.Fatal(err)
	}
	metrics, err := os.ReadFile(filepath.Join(w.Dir(), "metrics.csv"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(journal, samples, metrics)
	f.Add([]byte(`{"attempt":1,"begin":{"cell":1}}`+"\n"), []byte("a,\"b\"\"\n"), []byte("t_ns,value\n1,1e999\n"))
	f.Fuzz(func(t *testing.T, journal, samples, metrics []byte) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(w.Dir())); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{"journal.jsonl": journal, "samples.csv": samples,
			"metrics.csv": metrics} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r, err := record.Open(dir)
		if err != nil && fault.Of(err) != fault.BadRecord {
			t.Errorf("an error that is no BadRecord: %v", err)
		}
		if err == nil {
			for _, a := range r.Attempts {
				a.Measured()
			}
		}
	})
}

func TestCachedTokens(t *testing.T) {
	w, err := record.Create(t.TempDir(), record.Meta{Name: "cache", Started: time.Now()}, record.Environment{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Cell(record.Cell{ID: 1})
	a := w.Begin(record.Cell{ID: 1}, record.Beginning{Repetition: 1})
	want := []int{0, 3, record.CacheUnknown}
	for _, n := range want {
		a.Request(record.Measure, record.Usage{CachedTokens: n, Sent: time.Now()}, nil, time.Now())
	}
	a.End(record.OK, "", nil, record.Cost{})
	if err := w.Close(record.OK); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
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

func TestARepetitionInAnEarlierSession(t *testing.T) {
	w, err := record.Create(t.TempDir(), record.Meta{Name: "reused", Started: time.Now()}, record.Environment{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, other := record.Cell{ID: 1, Engine: "e", Isolation: record.OfLaunch, Reused: true, NoTokenIDs: true},
		record.Cell{ID: 2, Engine: "f"}
	w.Cell(c)
	w.Cell(other)
	first := w.Begin(c, record.Beginning{Repetition: 1})
	first.End(record.OK, "", nil, record.Cost{})
	w.Begin(c, record.Beginning{Repetition: 2, OpenedBy: first.ID()}).End(record.OK, "", nil, record.Cost{})
	r, err := record.Open(w.Dir())
	if err != nil || len(r.Attempts) != 2 {
		t.Fatalf("%v, %d attempts", err, len(r.Attempts))
	}
	if a, b := r.Attempts[0], r.Attempts[1]; a.OpenedBy != 0 || a.Launch() != a || b.OpenedBy != a.ID ||
		b.Launch() != a || b.Repetition != 2 || r.Cells[0] != c {
		t.Errorf("%+v and %+v of %+v", a, b, r.Cells[0])
	}
	w.Begin(other, record.Beginning{Repetition: 1, OpenedBy: first.ID()})
	if err := w.Close(record.OK); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Open(w.Dir()); err == nil || !strings.Contains(err.Error(), "none of its cell's") {
		t.Errorf("an attempt in another cell's session: %v", err)
	}
}
