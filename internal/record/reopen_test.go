package record

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
)

var resumed = Cell{ID: 1, Engine: "llamacpp", Prompt: `{"index":{"at":` + "\n", MaxTokens: 2, Repetitions: 3}

// scratch returns a folder in memory if possible: the tests write a hundred folders and sync each.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "record")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		check.Also(t, os.RemoveAll(dir))
	})
	return dir
}

// made creates a run folder with these cells.
func made(t testing.TB, cells ...Cell) *Writer {
	t.Helper()
	w, err := Create(scratch(t), Meta{Name: "resumed", Started: time.Now()}, Environment{OS: "test", Cores: 2},
		[]byte("name: resumed\n"))
	check.Err(t, err)
	for _, c := range cells {
		w.Cell(c)
	}
	return w
}

// ended closes a run and reads it.
func ended(t testing.TB, w *Writer, status Status) *Run {
	t.Helper()
	check.Err(t, w.Close(status))
	r, err := Open(w.dir)
	check.Err(t, err)
	return r
}

func reopened(t testing.TB, dir string) (*Writer, *State) {
	t.Helper()
	w, s, err := Reopen(dir)
	check.Err(t, err)
	return w, s
}

func put(t testing.TB, path string, text []byte) {
	t.Helper()
	check.Err(t, os.WriteFile(path, text, 0o644))
}

// changed copies a folder and changes one file.
func changed(t testing.TB, from, file string, with func(string) string) string {
	t.Helper()
	dir := filepath.Join(scratch(t), "changed")
	check.Err(t, os.CopyFS(dir, os.DirFS(from)))
	path := filepath.Join(dir, file)
	was := string(check.Read(t, path))
	now := with(was)
	if now == was {
		t.Fatalf("nothing was changed in %s:\n%s", file, was)
	}
	put(t, path, []byte(now))
	return dir
}

// replaced returns a function that replaces the first old by new.
func replaced(old, new string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, new, 1) }
}

// attempt writes an attempt with rows in every file that contain its number.
func attempt(w *Writer, c Cell, repetition int, status Status) int {
	r := w.Begin(c, Beginning{Repetition: repetition, Machine: &MachineState{Load1: 0.5}})
	at := time.Now()
	s := NewSample()
	s.Begin, s.End, s.RSS = at, at.Add(time.Microsecond), int64(r.ID())*MiB
	s.Values = []Value{{Name: "own_count", Value: float64(r.ID())}}
	src := r.Source(Source{Role: "server", Method: MethodStatm, PID: r.ID()})
	r.Sample(src, s)
	r.Total(Total{Sample: s, Method: MethodStatm, Processes: r.ID()})
	r.Phase(Load, at, at.Add(time.Millisecond))
	r.Request(Slot{}, time.Time{}, Measure, Usage{PromptIDs: []int{r.ID()}, Sent: at, Text: "a\n"},
		[]Token{{0, r.ID(), at}, {1, r.ID(), at}}, at.Add(time.Millisecond))
	r.Score(Score{Forced: r.ID(), Top: []Candidate{{r.ID(), -1}, {0, -2}}})
	r.End(status, "", nil, Cost{})
	return r.ID()
}

// sizes returns the sizes of a folder's files.
func sizes(t testing.TB, w *Writer) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, f := range growing {
		info, err := os.Stat(filepath.Join(w.dir, f.name))
		check.Err(t, err)
		out[f.name] = info.Size()
	}
	return out
}

// wholeAttempt checks that an attempt has all of its own rows and no others.
func wholeAttempt(a *Attempt) error {
	switch {
	case len(a.Samples) != 1 || a.Samples[0].RSS != float64(a.ID):
		return fmt.Errorf("samples %+v", a.Samples)
	case len(a.Metrics) != 1 || a.Metrics[0].Value != float64(a.ID):
		return fmt.Errorf("values %+v", a.Metrics)
	case len(a.Totals) != 1 || a.Totals[0].Processes != a.ID:
		return fmt.Errorf("totals %+v", a.Totals)
	case len(a.Requests) != 1 || len(a.Requests[0].Tokens) != 2 || a.Requests[0].Tokens[1].ID != a.ID:
		return fmt.Errorf("requests %+v", a.Requests)
	}
	return nil
}

// A kill leaves any part of what was written after the last commit, in each file. Committed attempts survive, and no
// row moves to another attempt.
func TestRecordOfKilledRunResumes(t *testing.T) {
	w := made(t, resumed)
	const attempts = 4
	before := make([]map[string]int64, 0, attempts+1)
	for n := range attempts {
		before = append(before, sizes(t, w))
		attempt(w, resumed, n+1, OK)
	}
	before = append(before, sizes(t, w))
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		committed := random.IntN(attempts)
		dir := filepath.Join(scratch(t), "cut")
		check.Err(t, os.CopyFS(dir, os.DirFS(w.dir)))
		begun := false                                  // the beginning is on disk before any row
		for _, f := range slices.Backward(growing[:]) { // the journal first
			low, high := before[committed][f.name], before[committed+1][f.name]
			if f.name == JournalFile {
				high = lineOf(t, w.dir, committed+1, "end") // its newline alone commits the next
			} else if !begun {
				high = low + 1
			}
			at := low + random.Int64N(high-low)
			if f.name == JournalFile {
				begun = at > lineOf(t, w.dir, committed+1, "begin")
			}
			check.Err(t, os.Truncate(filepath.Join(dir, f.name), at))
		}
		resumeFrom(t, dir, committed)
		if t.Failed() {
			t.Fatalf("round %d, behind %d commits", round, committed)
		}
	}
}

// lineOf returns the end of the line with the beginning or the end of an attempt.
func lineOf(t *testing.T, dir string, attempt int, kind string) int64 {
	t.Helper()
	text := check.Read(t, filepath.Join(dir, JournalFile))
	mark := fmt.Sprintf(`"attempt":%d,%q`, attempt, kind)
	i := strings.Index(string(text), mark)
	return int64(i + strings.Index(string(text[i:]), "\n"))
}

func resumeFrom(t *testing.T, dir string, committed int) {
	t.Helper()
	w, s := reopened(t, dir)
	if n := len(s.Commits(1)); n != committed {
		t.Errorf("%d attempts are committed, %d were", n, committed)
	}
	last := s.Last.NS
	w.Resumed(Resumed{})
	if _, announced := s.Cell(1); !announced {
		w.Cell(resumed)
	}
	added := attempt(w, resumed, committed+1, OK)
	r := ended(t, w, OK)
	if r.Status != OK || len(r.Resumes) != 1 || r.Resumes[0].NS <= last || len(r.Cells) != 1 {
		t.Errorf("status %s, resumed %+v behind %d, %d cells", r.Status, r.Resumes, last, len(r.Cells))
	}
	counted := 0
	for _, a := range r.Attempts {
		if !a.Counted() {
			t.Errorf("attempt %d of repetition %d is neither complete nor repeated", a.ID, a.Repetition)
			continue
		}
		counted++
		if err := wholeAttempt(a); err != nil {
			t.Errorf("attempt %d, %d is the one added: %v", a.ID, added, err)
		}
	}
	if counted != committed+1 {
		t.Errorf("%d attempts count, want %d", counted, committed+1)
	}
}

// A run that is still written names its process, and its unfinished launch has not failed. After a kill it is
// interrupted.
func TestOpenOfARunningRun(t *testing.T) {
	w := made(t, resumed)
	attempt(w, resumed, 1, OK)
	w.Begin(resumed, Beginning{Repetition: 2})
	w.mu.Lock()
	w.flush()
	w.mu.Unlock()
	for _, want := range []struct{ process, attempts int }{{os.Getpid(), 1}, {0, 2}} {
		r, err := Open(w.dir)
		check.Err(t, err)
		if r.Status != Interrupted || r.Running != want.process || len(r.Attempts) != want.attempts {
			t.Errorf("%s, process %d, %d attempts; want %+v", r.Status, r.Running, len(r.Attempts), want)
		}
		w.closeFiles() // as a kill does
	}
}

func TestRecordTimeNeverGoesBack(t *testing.T) {
	w := made(t, resumed)
	attempt(w, resumed, 1, OK)
	check.Err(t, w.Close(Interrupted))
	// as if the clock had been set back by an hour
	path := filepath.Join(w.dir, MetaFile)
	meta := Meta{}
	check.Err(t, readJSON(path, &meta))
	meta.Started = meta.Started.Add(time.Hour)
	check.Err(t, whole.JSON(path, meta))
	again, s := reopened(t, w.dir)
	again.Resumed(Resumed{Tool: Tool{Version: "2"}, Changed: []Difference{{"kernel", "1", "2"}}})
	attempt(again, resumed, 2, OK)
	r := ended(t, again, OK)
	first, second := r.Attempts[0], r.Attempts[1]
	if second.BeginNS <= first.EndNS || second.BeginNS <= s.Last.NS || second.Samples[0].NS <= first.Samples[0].NS {
		t.Errorf("from %d and %d on to %d", first.EndNS, s.Last.NS, second.BeginNS)
	}
	if back := r.Resumes[0].SetBackNS; back < int64(59*time.Minute) || back > int64(61*time.Minute) {
		t.Errorf("set back by %s", time.Duration(back))
	}
	var codes []string
	for _, w := range r.Warnings {
		codes = append(codes, w.Code)
	}
	if !slices.Equal(codes, []string{"resumed-elsewhere", "clock-set-back"}) {
		t.Errorf("warnings %v", r.Warnings)
	}
	text := check.Read(t, filepath.Join(w.dir, samplesFile))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if lines[1] >= lines[2] { // they start with the time
		t.Errorf("a row's wall-clock time goes back:\n%s\n%s", lines[1], lines[2])
	}
}

func TestReopenRefusesLockedFolder(t *testing.T) {
	w := made(t)
	_, _, err := Reopen(w.dir)
	if err == nil || !strings.Contains(err.Error(), "another run is writing to this folder") ||
		fault.Of(err) != fault.Unwritable {
		t.Errorf("beside its own writer: %v", err)
	}
	check.Err(t, w.Close(Interrupted))
	again, _ := reopened(t, w.dir)
	if _, _, err := Reopen(w.dir); err == nil {
		t.Error("reopened twice")
	}
	check.Err(t, again.Close(OK))
}

func TestReopenRefusesInvalidFolders(t *testing.T) {
	w := made(t, resumed)
	attempt(w, resumed, 1, OK)
	check.Err(t, w.Close(Interrupted))
	change := func(file string, with func(string) string) string { return changed(t, w.dir, file, with) }
	elsewhere := t.TempDir()
	for _, c := range []struct{ dir, want string }{
		{elsewhere, "not a run folder"},
		{filepath.Join(elsewhere, "none"), "none"},
		{change(MetaFile, replaced(Schema, "llmparity.run/3")), "llmparity.run/3"},
		{change(MetaFile, replaced(Schema, "llmparity.run/2.999")), "was written by a newer llmparity"},
		{change(MetaFile, replaced(Schema, "llmparity.run/1.1")), "unsupported schema"},
		{change(MetaFile, func(string) string { return "{" }), "is damaged"},
		{change(samplesFile, replaced(",role", "")), "can't resume: its columns differ from this version's"},
		{change(JournalFile, replaced(`"begin"`, `"begins"`)), "attempt 1 has no beginning"},
		{change(JournalFile, func(s string) string { return "nonsense\n" + s }), "journal.jsonl line 1"},
	} {
		_, _, err := Reopen(c.dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
			fault.Of(err) != fault.BadRecord {
			t.Errorf("%v (class %s), want %q", err, fault.Of(err), c.want)
		}
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("files left in a folder that is not a run: %v %v", left, err)
	}
}

func TestRepeatedAttemptsReplaceOthers(t *testing.T) {
	w := made(t)
	other := Cell{ID: 2, Engine: "llamacpp"}
	w.Cell(resumed)
	w.Cell(other)
	attempt(w, resumed, 1, OK)
	attempt(w, resumed, 2, Failed)
	attempt(w, other, 1, Failed) // never repeated
	w.Begin(resumed, Beginning{Repetition: 3})
	check.Err(t, w.Close(Interrupted))
	again, s := reopened(t, w.dir)
	var committed []Status
	for _, a := range s.Commits(1) {
		committed = append(committed, a.Status)
	}
	if !slices.Equal(committed, []Status{OK, Failed}) || s.Last.Attempt != 4 {
		t.Errorf("committed %v of %d attempts", committed, s.Last.Attempt)
	}
	again.Resumed(Resumed{})
	attempt(again, resumed, 2, OK)
	attempt(again, resumed, 3, OK)
	r := ended(t, again, OK)
	ids := func(all []*Attempt) (out []int) {
		for _, a := range all {
			out = append(out, a.ID)
		}
		return out
	}
	if !reflect.DeepEqual(ids(r.Attempts), []int{1, 3, 5, 6}) || !reflect.DeepEqual(ids(r.Redone), []int{2, 4}) {
		t.Errorf("kept %v, repeated %v", ids(r.Attempts), ids(r.Redone))
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Code != "made-again" {
		t.Errorf("warnings %v", r.Warnings)
	}
}

func TestResumeKeepsPieces(t *testing.T) {
	w := made(t)
	w.Pieces(map[int]string{1: "a"})
	check.Err(t, w.Close(Interrupted))
	base := filepath.Base(w.dir) // a kill while the link is replaced leaves the temporary one
	check.Err(t, os.Symlink(base, filepath.Join(filepath.Dir(w.dir), ".latest-"+base)))
	again, _ := reopened(t, w.dir)
	again.Pieces(map[int]string{2: "b"})
	check.Err(t, again.Close(OK))
	r, err := Open(w.dir)
	if err != nil || !reflect.DeepEqual(r.Pieces, map[int]string{1: "a", 2: "b"}) {
		t.Errorf("%v: %v", r.Pieces, err)
	}
}

func TestResumeNeedsWritePermission(t *testing.T) {
	for _, why := range []error{syscall.EACCES, syscall.EROFS} {
		err := resumeFault(&os.PathError{Op: "open", Path: "results/x/.lock", Err: why}, "results/x")
		if fault.Of(err) != fault.Unwritable || !strings.Contains(err.Error(), "resume it as the user who started it") {
			t.Errorf("%v", err)
		}
	}
}
