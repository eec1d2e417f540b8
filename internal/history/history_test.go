package history

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"llmparity/internal/kit/check"
)

var began = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

// made is a run of two cells, of which the second may be the control cell, with six launches each.
func made(day int, decode, control float64, r *rand.Rand) *Run {
	run := &Run{Head: Head{Name: "nightly", Started: began.AddDate(0, 0, day), Machine: "mouse, 2 cores",
		Commit: Commit{SHA: fmt.Sprintf("%040x", 0xabc0000+day), Time: began.AddDate(0, 0, day).Add(-time.Hour),
			Author: "Jane <script>", Subject: "Make it | *worse* \x1b[31m"},
		Environment: map[string]string{"kernel": "6.1"},
		Cells: []Cell{{Key: "engine=webllm", Label: "WebLLM, tiny", Engine: "WebLLM",
			Environment: map[string]string{"browser": "Chromium 156"}}, {Key: "engine=llamacpp",
			Label:  "llama.cpp, tiny",
			Engine: "llama.cpp"}},
		Figures: []Figure{{Name: "decode_tps", Title: "decode", Unit: "tokens/s", Better: "higher", Tested: true,
			Ratio: true},
			{Name: "peak_pss", Title: "peak memory", Unit: "MiB", Better: "lower", Tested: true},
			{Name: "tokens", Title: "tokens generated", Unit: "tokens"}}}}
	if control > 0 {
		run.Cells[0].Control, run.Cells[1].Fixed = new(1), true
	} else {
		control = 50
	}
	speeds := []float64{decode * math.Exp(0.01*r.NormFloat64()), control * math.Exp(0.01*r.NormFloat64())}
	for cell, speed := range speeds {
		for n := 1; n <= 6; n++ {
			run.Launches = append(run.Launches, Launch{cell, n,
				[]float64{speed * math.Exp(0.02*r.NormFloat64()), 300 + r.NormFloat64(), math.NaN()}})
		}
	}
	return run
}

// filled is a store with so many runs, whose decode and control are functions of the day.
func filled(t testing.TB, where string, days int, decode, control func(day int) float64, changed func(int,
	*Run)) *Store {
	t.Helper()
	s := Open(where)
	if where == "" {
		s = &Store{"memory", &memory{texts: map[string][]byte{}}}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for day := range days {
		c := 0.0
		if control != nil {
			c = control(day)
		}
		run := made(day, decode(day), c, r)
		if changed != nil {
			changed(day, run)
		}
		_, err := s.Add(t.Context(), run)
		check.Err(t, err)
	}
	return s
}

// memory is a store that is nowhere: tests of checks would otherwise wait for the disk, run by run.
type memory struct {
	sync.Mutex
	texts map[string][]byte
}

func (m *memory) each(_ context.Context, folder string, do func(string, []byte)) error {
	for name, text := range m.texts {
		if of, ok := strings.CutPrefix(name, folder+"/"); ok {
			do(of, text)
		}
	}
	return nil
}

func (m *memory) put(_ context.Context, folder, name string, text []byte) (bool, error) {
	m.Lock()
	defer m.Unlock()
	_, there := m.texts[folder+"/"+name]
	m.texts[folder+"/"+name] = text
	return !there, nil
}

func constant(v float64) func(int) float64 { return func(int) float64 { return v } }

// step falls by a share at a day.
func step(v, by float64, at int) func(int) float64 {
	return func(day int) float64 {
		if day >= at {
			return v * (1 - by)
		}
		return v
	}
}

func report(t testing.TB, s *Store) *Report {
	t.Helper()
	l, err := s.Read(t.Context())
	check.Err(t, err)
	r, err := l.Check(t.Context())
	check.Err(t, err)
	return r
}

func TestFilesAreReadAsTheyWereWritten(t *testing.T) {
	run := made(3, 20, 50, rand.New(rand.NewPCG(1, 1)))
	name, text, err := run.Encode()
	check.Err(t, err)
	if !strings.HasPrefix(name, "20260304T010000Z-") || !strings.HasSuffix(name, suffix) {
		t.Errorf("name %s", name)
	}
	got, err := Decode(text)
	check.Err(t, err)
	_, again, err := got.Encode()
	check.Err(t, err)
	if !bytes.Equal(text, again) {
		t.Errorf("read and written again:\n%s\nwas\n%s", again, text)
	}
	for cut := range len(text) - 1 {
		if _, err := Decode(text[:cut]); err == nil {
			t.Fatalf("cut after %d of %d bytes, it is read", cut, len(text))
		}
	}
}

func FuzzDecode(f *testing.F) {
	_, text, err := made(3, 20, 50, rand.New(rand.NewPCG(1, 1))).Encode()
	check.Err(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := Decode(text); err == nil {
			r.Summaries()
		}
	})
}

func TestStoresKeepRunsOnce(t *testing.T) {
	for _, where := range []string{t.TempDir(), OfBranch + "history"} {
		if strings.HasPrefix(where, OfBranch) {
			t.Chdir(repository(t))
			check.Err(t, os.Mkdir("below", 0o755))
			t.Chdir("below")
		}
		s := filled(t, where, 3, constant(20), constant(50), nil)
		again := made(2, 20, 50, rand.New(rand.NewPCG(5, 5)))
		for i, want := range []bool{true, false} {
			added, err := s.Add(t.Context(), again)
			check.Err(t, err)
			if added != want {
				t.Errorf("%s: added %v at try %d", where, added, i)
			}
		}
		l, err := s.Read(t.Context())
		check.Err(t, err)
		if len(l.Runs) != 4 || len(l.Series) != 4 || len(l.Series[0].Points) != 4 || len(l.Broken) != 0 {
			t.Errorf("%s: %d runs, %d series, broken %v", where, len(l.Runs), len(l.Series), l.Broken)
		}
		if !slices.IsSortedFunc(l.Runs, func(a, b Head) int { return before(&a, &b) }) {
			t.Errorf("%s: runs are not in order", where)
		}
	}
}

func repository(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
	return dir
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestBranchesMerge: two clones add runs to the same branch, and git merges them without help.
func TestBranchesMerge(t *testing.T) {
	a, b := repository(t), t.TempDir()
	r := rand.New(rand.NewPCG(1, 1))
	add := func(dir string, day int) {
		_, err := (&Store{"", branch{"history", dir}}).Add(t.Context(), made(day, 20, 50, r))
		check.Err(t, err)
	}
	add(a, 1)
	git(t, b, "clone", "-q", a, ".")
	git(t, b, "branch", "history", "origin/history")
	add(a, 2)
	add(b, 3)
	git(t, b, "fetch", "-q")
	git(t, b, "checkout", "-q", "history")
	git(t, b, "-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "--no-edit", "origin/history")
	l, err := (&Store{"", branch{"history", b}}).Read(t.Context())
	check.Err(t, err)
	if len(l.Runs) != 3 {
		t.Errorf("%d runs after the merge", len(l.Runs))
	}
	if out := git(t, a, "status", "--porcelain"); out != "" {
		t.Errorf("the work tree changed: %s", out)
	}
}

func TestCutFilesAreNamed(t *testing.T) {
	dir := t.TempDir()
	s := filled(t, dir, 4, constant(20), nil, nil)
	files, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
	check.Err(t, err)
	text := check.Read(t, files[1])
	check.Err(t, os.WriteFile(files[1], text[:len(text)-20], 0o600))
	check.Err(t, os.WriteFile(filepath.Join(dir, "runs", "x.jsonl"), []byte("<<<<<<< HEAD\n"), 0o600))
	r := report(t, s)
	if len(r.Broken) != 2 || r.Runs != 3 || r.Broken[0].Name != filepath.Base(files[1]) {
		t.Errorf("%d runs, broken %v", r.Runs, r.Broken)
	}
	var b strings.Builder
	check.Err(t, r.Text(&b))
	check.Has(t, b.String(), filepath.Base(files[1])+" is left out", "x.jsonl is left out")
}

func TestStepsAreRegressions(t *testing.T) {
	s := filled(t, "", 60, step(20, 0.1, 50), constant(50), nil)
	r := report(t, s)
	if len(r.Findings) != 1 || r.Alarms() != 1 {
		t.Fatalf("%d alarms in %+v", r.Alarms(), r.Findings)
	}
	f := r.Findings[0]
	if f.Verdict != Regression || f.Percent > -8 || f.Percent < -12 || f.Low > -10 || f.High < -10 || !f.Ratio ||
		f.Since.Time.Sub(began).Round(24*time.Hour).Hours()/24 != 50 {
		t.Errorf("%+v", f)
	}
	var text, marked strings.Builder
	check.Err(t, r.Text(&text))
	check.Err(t, r.Markdown(&marked))
	check.Has(t, text.String(), "1 regression in 2 series of 60 runs", "REGRESSION", "decode, WebLLM, tiny, mouse",
		"Jane <script>")
	check.Has(t, marked.String(), `Make it \| \*worse\*`, `Jane &lt;script\>`)
	if strings.Contains(text.String()+marked.String(), "\x1b") {
		t.Error("a subject steers the terminal")
	}
	check.Err(t, s.Acknowledge(t.Context(), r.Ack(f.Since.SHA[:12], "a debug build", "me")...))
	if r = report(t, s); r.Alarms() != 0 || r.Findings[0].Verdict != Acknowledged ||
		r.Findings[0].Why != "a debug build" {
		t.Errorf("after the acknowledgement: %+v", r.Findings[0])
	}
}

// TestMachinesAreNoRegressions: without a control cell, ten slow runs are a regression and its end. With one they are
// the machine's.
func TestMachinesAreNoRegressions(t *testing.T) {
	busy := func(v float64) func(int) float64 {
		return func(day int) float64 {
			if day >= 45 && day < 55 {
				return v * 0.7
			}
			return v
		}
	}
	if r := report(t, filled(t, "", 55, busy(20), nil, nil)); r.Alarms() == 0 || r.Bare == 0 {
		t.Errorf("without a control cell: %+v", r)
	}
	if r := report(t, filled(t, "", 70, busy(20), busy(50), nil)); r.Alarms() != 0 || len(r.Findings) < 2 ||
		slices.ContainsFunc(r.Findings, func(f *Finding) bool {
			return f.Verdict == Improvement ||
				f.Verdict == Recovered
		}) {
		t.Errorf("with a control cell: %+v", r.Findings)
	}
	// The engine in the browser suffers more: the ratio changes, too.
	r := report(t, filled(t, "", 55, func(day int) float64 { return busy(busy(20)(day))(day) }, busy(50), nil))
	if r.Alarms() != 0 || len(r.Findings) == 0 || r.Findings[0].Verdict != Machine {
		t.Errorf("both change: %+v", r.Findings)
	}
}

func TestEnvironmentsExplain(t *testing.T) {
	change := func(day int, r *Run) {
		if day >= 50 {
			r.Cells[0].Environment = map[string]string{"browser": "Chromium 157"}
		}
	}
	s := filled(t, "", 62, step(20, 0.15, 50), nil, change)
	r := report(t, s)
	if len(r.Findings) != 1 || r.Findings[0].Verdict != Environment || r.Alarms() != 0 ||
		r.Findings[0].Why != "browser Chromium 156 → Chromium 157" {
		t.Errorf("%+v", r.Findings)
	}
}

func TestRecoveredRegressionsAreQuiet(t *testing.T) {
	s := filled(t, "", 80, func(day int) float64 { return step(20, 0.1, 50)(day) / step(1, 0.1, 65)(day) }, nil, nil)
	r := report(t, s)
	var all []Verdict
	for _, f := range r.Findings {
		all = append(all, f.Verdict)
	}
	if !slices.Equal(all, []Verdict{Improvement, Recovered}) {
		t.Errorf("verdicts %v", all)
	}
}

func TestNewestEndIsSuspected(t *testing.T) {
	s := filled(t, "", 52, step(20, 0.3, 51), nil, func(_ int, r *Run) { r.Folder = "results/my run" })
	r := report(t, s)
	if len(r.Findings) != 1 || r.Findings[0].Verdict != Suspected || r.Alarms() != 0 {
		t.Fatalf("%+v", r.Findings)
	}
	check.Has(t, strings.Join(r.Findings[0].Confirm, "\n"), "llmparity run 'results/my run'/plan.yaml",
		"history add results/latest --commit "+r.Findings[0].Since.Short())
}

// TestBudgetIsOfItsTime: what a check found stays found if a dashboard grows.
func TestBudgetIsOfItsTime(t *testing.T) {
	s := filled(t, "", 60, step(20, 0.1, 50), nil, nil)
	r := rand.New(rand.NewPCG(3, 3))
	for day := 61; day < 65; day++ {
		run := made(day, 18, 0, r)
		cells := run.Cells
		for i := range 200 {
			c := cells[1]
			c.Key += fmt.Sprint(i)
			run.Cells = append(run.Cells, c)
			run.Launches = append(run.Launches, Launch{len(run.Cells) - 1, 1, []float64{50, 300, 1}})
		}
		_, err := s.Add(t.Context(), run)
		check.Err(t, err)
	}
	got := report(t, s)
	if got.Alarms() != 1 || got.Series < 400 || got.Short != 400 {
		t.Errorf("%d alarms, %d series, %d short", got.Alarms(), got.Series, got.Short)
	}
}

func TestMergeAddsWhatIsMissing(t *testing.T) {
	a, b := filled(t, t.TempDir(), 3, constant(20), nil, nil), filled(t, t.TempDir(), 5, constant(20), nil, nil)
	added, there, err := a.Merge(context.Background(), b)
	check.Err(t, err)
	if added != 2 || there != 3 {
		t.Errorf("added %d, %d there", added, there)
	}
}

// TestWhatChangesEveryNightExplainsNothing: the version of a nightly build.
func TestWhatChangesEveryNightExplainsNothing(t *testing.T) {
	nightly := func(day int, r *Run) { r.Environment["llmparity"] = fmt.Sprint("build ", day) }
	if r := report(t, filled(t, "", 60, step(20, 0.15, 50), nil, nightly)); r.Alarms() != 1 {
		t.Errorf("%+v", *r.Findings[0])
	}
}

// TestFailedControlCellsAreLeftOut: a run without a value of its control cell does not turn ratios into raw values.
func TestFailedControlCellsAreLeftOut(t *testing.T) {
	lost := func(day int, r *Run) {
		if day%10 == 9 {
			r.Launches = r.Launches[:6]
		}
	}
	s := filled(t, "", 60, step(20, 0.1, 45), step(50, 0.1, 45), lost)
	r := report(t, s)
	if r.Alarms() != 0 || r.Bare != 0 {
		t.Errorf("%d alarms, %d without a control cell", r.Alarms(), r.Bare)
	}
	if r := report(t, filled(t, "", 60, step(20, 0.15, 40), constant(50), lost)); r.Alarms() != 1 ||
		!r.Findings[0].Ratio {
		t.Errorf("a step of the ratio: %+v", r.Findings)
	}
}
