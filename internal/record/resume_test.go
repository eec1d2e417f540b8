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

	"llmparity/internal/check"
	"llmparity/internal/fault"
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
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
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

func closed(t testing.TB, w *Writer, status Status) {
	t.Helper()
	check.Err(t, w.Close(status))
}

// ended closes a run and reads it.
func ended(t testing.TB, w *Writer, status Status) *Run {
	t.Helper()
	closed(t, w, status)
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

func contents(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	check.Err(t, err)
	return text
}

func put(t testing.TB, path string, text []byte) {
	t.Helper()
	check.Err(t, os.WriteFile(path, text, 0o644))
}

func copied(t testing.TB, to, from string) {
	t.Helper()
	check.Err(t, os.CopyFS(to, os.DirFS(from)))
}

// changed copies a folder and changes one file.
func changed(t testing.TB, from, file string, with func(string) string) string {
	t.Helper()
	dir := filepath.Join(scratch(t), "changed")
	copied(t, dir, from)
	path := filepath.Join(dir, file)
	was := string(contents(t, path))
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
	r.Request(Measure, Usage{PromptIDs: []int{r.ID()}, Sent: at, Text: "a\n"},
		[]Token{{0, r.ID(), at}, {1, r.ID(), at}}, at.Add(time.Millisecond))
	r.Score(Score{Forced: r.ID(), Top: []Candidate{{r.ID(), -1}, {0, -2}}})
	r.End(status, "", nil, Cost{})
	return r.ID()
}

// sizes returns the sizes of a folder's files.
func sizes(t testing.TB, w *Writer) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, f := range w.files() {
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
		copied(t, dir, w.dir)
		for _, f := range w.files() {
			low, high := before[committed][f.name], before[committed+1][f.name]
			if f.name == journalFile {
				high = endOf(t, w.dir, committed+1) // its newline alone commits the next
			}
			check.Err(t, os.Truncate(filepath.Join(dir, f.name), low+random.Int64N(high-low)))
		}
		resumeFrom(t, dir, committed)
		if t.Failed() {
			t.Fatalf("round %d, behind %d commits", round, committed)
		}
	}
}

// endOf returns the end of the line that commits an attempt.
func endOf(t *testing.T, dir string, attempt int) int64 {
	t.Helper()
	text := contents(t, filepath.Join(dir, journalFile))
	mark := fmt.Sprintf(`"attempt":%d,"end"`, attempt)
	i := strings.Index(string(text), mark)
	return int64(i + strings.Index(string(text[i:]), "\n"))
}

func resumeFrom(t *testing.T, dir string, committed int) {
	t.Helper()
	w, s := reopened(t, dir)
	if n := len(s.Commits(1)); n != committed {
		t.Errorf("%d attempts are committed, %d were", n, committed)
	}
	last := s.LastNS
	w.Resumed(Resumed{})
	if !s.Announced(1) {
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

// Numbers of attempts that left rows are not used again, even if files are cut where no kill cuts them.
func TestTruncatedRecordResumes(t *testing.T) {
	w := made(t, resumed)
	for n := range 4 {
		attempt(w, resumed, n+1, OK)
	}
	closed(t, w, OK)
	random := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		dir := filepath.Join(scratch(t), "cut")
		copied(t, dir, w.dir)
		for name, size := range sizes(t, w) {
			check.Err(t, os.Truncate(filepath.Join(dir, name), random.Int64N(size+1)))
			if random.IntN(4) == 0 { // a power failure leaves zeros
				zeros(t, filepath.Join(dir, name), random.IntN(100_000))
			}
		}
		again, s := reopened(t, dir)
		again.Resumed(Resumed{})
		if !s.Announced(1) {
			again.Cell(resumed)
		}
		id := attempt(again, resumed, 9, OK)
		r := ended(t, again, OK)
		a := r.Attempts[len(r.Attempts)-1]
		if err := wholeAttempt(a); a.ID != id || err != nil {
			t.Errorf("attempt %d, not %d: %v", a.ID, id, err)
		}
	}
}

func zeros(t *testing.T, path string, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	check.Err(t, err)
	defer f.Close()
	if _, err := f.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
}

func TestRecordTimeNeverGoesBack(t *testing.T) {
	w := made(t, resumed)
	attempt(w, resumed, 1, OK)
	closed(t, w, Interrupted)
	// as if the clock had been set back by an hour
	path := filepath.Join(w.dir, metaFile)
	meta := Meta{}
	check.Err(t, readJSON(path, &meta))
	meta.Started = meta.Started.Add(time.Hour)
	check.Err(t, replaceJSON(path, meta))
	again, s := reopened(t, w.dir)
	again.Resumed(Resumed{Tool: Tool{Version: "2"}, Changed: []Difference{{"kernel", "1", "2"}}})
	attempt(again, resumed, 2, OK)
	r := ended(t, again, OK)
	first, second := r.Attempts[0], r.Attempts[1]
	if second.BeginNS <= first.EndNS || second.BeginNS <= s.LastNS || second.Samples[0].NS <= first.Samples[0].NS {
		t.Errorf("from %d and %d on to %d", first.EndNS, s.LastNS, second.BeginNS)
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
	text := contents(t, filepath.Join(w.dir, samplesFile))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if lines[1] >= lines[2] { // they start with the time
		t.Errorf("a row's wall-clock time goes back:\n%s\n%s", lines[1], lines[2])
	}
}

func TestRecordTimeFollowsWallClock(t *testing.T) {
	started := time.Now().Add(-time.Hour).Round(0)
	s := &State{Meta: Meta{Started: started}, LastNS: int64(time.Minute)}
	now := time.Now()
	c, back := s.clock(now)
	if got := time.Duration(c.ns(now)); back != 0 || got < 59*time.Minute || got > 61*time.Minute {
		t.Errorf("%s, set back by %d", got, back)
	}
	if c.stamp(now) != now.In(started.Location()).Format(timestampLayout) {
		t.Errorf("%s at %s", c.stamp(now), now)
	}
}

func TestReopenRefusesLockedFolder(t *testing.T) {
	w := made(t)
	_, _, err := Reopen(w.dir)
	if err == nil || !strings.Contains(err.Error(), "another run is writing to this folder") ||
		fault.Of(err) != fault.Unwritable {
		t.Errorf("beside its own writer: %v", err)
	}
	closed(t, w, Interrupted)
	again, _ := reopened(t, w.dir)
	if _, _, err := Reopen(w.dir); err == nil {
		t.Error("reopened twice")
	}
	closed(t, again, OK)
}

func TestReopenRefusesInvalidFolders(t *testing.T) {
	w := made(t, resumed)
	attempt(w, resumed, 1, OK)
	closed(t, w, Interrupted)
	change := func(file string, with func(string) string) string { return changed(t, w.dir, file, with) }
	elsewhere := t.TempDir()
	for _, c := range []struct{ dir, want string }{
		{elsewhere, "not a run folder"},
		{filepath.Join(elsewhere, "none"), "none"},
		{change(metaFile, replaced(Schema, "llmparity.run/2")), "llmparity.run/2"},
		{change(metaFile, replaced(Schema, "llmparity.run/1.999")), "was written by a newer llmparity"},
		{change(metaFile, func(string) string { return "{" }), "is damaged"},
		{change(samplesFile, replaced(",role", "")), "can't resume: its columns differ from this version's"},
		{change(journalFile, replaced(`"begin"`, `"begins"`)), "attempt 1 has no beginning"},
		{change(journalFile, func(s string) string { return "nonsense\n" + s }), "journal.jsonl line 1"},
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

// Early versions wrote totals without the last three columns.
func TestResumeAddsNewColumns(t *testing.T) {
	w := made(t, resumed)
	attempt(w, resumed, 1, OK)
	closed(t, w, Interrupted)
	path := filepath.Join(w.dir, totalsFile)
	text := contents(t, path)
	older := strings.Replace(string(text), ",pss_read_mb,pss_low_mb,pss_high_mb\n", "\n", 1)
	older = strings.ReplaceAll(older, ",,,\n", "\n") + "2026-03-14T09:26:5" // a kill cut it
	put(t, path, []byte(older))
	again, _ := reopened(t, w.dir)
	again.Resumed(Resumed{})
	attempt(again, resumed, 2, OK)
	closed(t, again, OK)
	if now, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(now), string(text)) {
		t.Errorf("%v: totals.csv is\n%s\nand does not begin with\n%s", err, now, text)
	}
	r, err := Open(w.dir)
	if err != nil || len(r.Attempts) != 2 {
		t.Fatalf("%v: %+v", err, r)
	}
	for _, a := range r.Attempts {
		if err := wholeAttempt(a); err != nil {
			t.Errorf("attempt %d: %v", a.ID, err)
		}
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
	closed(t, w, Interrupted)
	again, s := reopened(t, w.dir)
	var committed []Status
	for _, a := range s.Commits(1) {
		committed = append(committed, a.Status)
	}
	if !slices.Equal(committed, []Status{OK, Failed}) || s.Attempts != 4 {
		t.Errorf("committed %v of %d attempts", committed, s.Attempts)
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

func TestTrafficSlotRoundTrips(t *testing.T) {
	w := made(t)
	c := Cell{ID: 1, Traffic: &Traffic{Loop: ClosedLoop, Concurrency: 2, Requests: 4, Seed: 7}}
	w.Cell(c)
	r := w.Begin(c, Beginning{Repetition: 1, Machine: &MachineState{Load1: 1, Governor: "powersave"}})
	due := time.Now()
	r.RequestIn(Slot{Client: 2, Kind: "short", Turn: 3}, due, Measure, Usage{Sent: due.Add(time.Second)}, nil,
		due.Add(2*time.Second))
	r.End(OK, "", nil, Cost{})
	got := ended(t, w, OK)
	q := got.Attempts[0].Requests[0]
	if q.Client != 2 || q.Kind != "short" || q.Turn != 3 || q.SentNS-q.Due != int64(time.Second) ||
		!reflect.DeepEqual(got.Cells[0], c) {
		t.Errorf("%+v of %+v", q, got.Cells[0])
	}
	if m := got.Attempts[0].Machine; m == nil || m.Governor != "powersave" || got.Attempts[0].Load1 != 1 {
		t.Errorf("machine: %+v", m)
	}
}

// The first new line of a resumed run needs the new schema; opening alone does not.
func TestResumeRaisesSchema(t *testing.T) {
	w := made(t, resumed)
	attempt(w, resumed, 1, OK)
	closed(t, w, Interrupted)
	path := filepath.Join(w.dir, metaFile)
	text := string(contents(t, path))
	older := strings.Replace(text, `"`+Schema+`"`, `"llmparity.run/1"`, 1)
	put(t, path, []byte(older))
	again, _ := reopened(t, w.dir)
	if now := string(contents(t, path)); now != older {
		t.Errorf("opening changed run.json: %s", now)
	}
	again.Resumed(Resumed{})
	closed(t, again, OK)
	if now := string(contents(t, path)); now != text {
		t.Errorf("run.json is\n%s\nand not\n%s", now, text)
	}
}

// A kill while the link is replaced leaves the temporary one.
func TestReopenReplacesLeftoverLink(t *testing.T) {
	w := made(t)
	closed(t, w, Interrupted)
	base := filepath.Base(w.dir)
	check.Err(t, os.Symlink(base, filepath.Join(filepath.Dir(w.dir), ".latest-"+base)))
	again, _ := reopened(t, w.dir)
	closed(t, again, OK)
}

func TestResumeKeepsPieces(t *testing.T) {
	w := made(t)
	w.Pieces(map[int]string{1: "a"})
	closed(t, w, Interrupted)
	again, _ := reopened(t, w.dir)
	again.Pieces(map[int]string{2: "b"})
	closed(t, again, OK)
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

func TestStateHasLastEngineInfo(t *testing.T) {
	w := made(t)
	cells := []Cell{{ID: 1, Engine: "a", Setup: 1}, {ID: 2, Engine: "a", Setup: 2}}
	say := func(c Cell, ended bool, versions ...string) {
		r := w.Begin(c, Beginning{Repetition: 1})
		for _, v := range versions {
			r.Event(Event{Engine: &EngineInfo{Name: "a", Version: v}})
		}
		if ended {
			r.End(OK, "", nil, Cost{})
		}
	}
	for _, c := range cells {
		w.Cell(c)
	}
	say(cells[0], true, "1", "2")
	say(cells[1], true, "3")
	say(cells[1], false, "4") // killed
	closed(t, w, Interrupted)
	s, err := Scan(w.dir)
	check.Err(t, err)
	for setup, want := range map[int]string{1: "2", 2: "3"} {
		if info, ok := s.Engine(setup, "a"); !ok || info.Version != want {
			t.Errorf("setup %d: %+v %v", setup, info, ok)
		}
	}
	if _, ok := s.Engine(1, "b"); ok {
		t.Error("info of an engine that never ran")
	}
	if c, ok := s.Cell(2); !ok || c != cells[1] {
		t.Errorf("%+v %v", c, ok)
	}
	if _, ok := s.Cell(3); ok {
		t.Error("found an unknown cell")
	}
}
