package reports_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
	"llmparity/compare/memory"
	"llmparity/compare/validate"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/stats"
	"llmparity/reports"
)

var update = flag.Bool("update", false, "write the golden files anew")

// colours are those of two engines; others take what is left.
var colours = reports.Colours{"webllm": 1, "llamacpp": 2}

func golden(t *testing.T, name string, render func(io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	check.Err(t, render(&got))
	path := filepath.Join("testdata", name)
	_ = os.Remove(path + ".got") // of an earlier test
	if *update {
		check.Err(t, os.WriteFile(path, got.Bytes(), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./reports -update writes it)", err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		_ = os.WriteFile(path+".got", got.Bytes(), 0o644)
		t.Errorf("%s differs; what came out is beside it as %s.got", path, name)
	}
}

// made are the cases that a test has written and read: no renderer changes a run, so that all tests can have the same.
var made = struct {
	sync.Mutex
	runs map[string]*record.Run
}{runs: map[string]*record.Run{}}

// cases are runs of every kind that a renderer must bear; names picks some.
func cases(t *testing.T, names ...string) map[string][]*record.Run {
	t.Helper()
	out := map[string][]*record.Run{}
	for name, run := range map[string]func() *record.Run{
		"mixed": func() *record.Run {
			a, b := comparetest.Browser(7), comparetest.Native(6)
			a.Warmup, a.Failing, a.Cut = true, map[int]record.Class{3: record.DeviceLost}, 5
			a.Warnings = []record.Warning{{Code: "library-of-our-own",
				Text: "the model library was compiled by llmparity, so its kernels are not MLC's"}}
			b.IDs[40], b.Text = 3, strings.Replace(b.Text, "light", "rain", 1)
			return comparetest.Run(t, "compare", a, b)
		},
		"same-device": func() *record.Run {
			a, b := comparetest.Browser(6), comparetest.Native(6)
			a.Device = b.Device
			return comparetest.Run(t, "compare", a, b)
		},
		"lost": func() *record.Run {
			a := comparetest.Browser(2)
			a.Failing = map[int]record.Class{1: record.OOM, 2: record.OOM}
			return comparetest.Run(t, "lost", a)
		},
		"few": func() *record.Run { return comparetest.Run(t, "smoke", comparetest.Browser(1), comparetest.Native(1)) },
		"inside": func() *record.Run {
			return comparetest.Run(t, "inside", comparetest.Measured(comparetest.Browser(6), comparetest.Page()),
				comparetest.Measured(comparetest.Native(6), nil))
		},
		"served": func() *record.Run {
			a, b := comparetest.Native(6), comparetest.Served(6)
			b.Cell.PromptCache, b.Resident, b.NoPSS, b.Reused, a.Reused = record.CacheOn, true, true, true, true
			a.Cell.Reused, b.Cell.Reused = true, true
			usage := b.Usage
			b.Usage = func(u *record.Usage) { usage(u); u.CachedTokens = 3 }
			b.Reported = func(_, decode time.Duration) map[string]float64 {
				return map[string]float64{"eval_count": 41, "eval_duration": float64(decode), "prompt_eval_count": 1,
					"cached_tokens": 3}
			}
			return comparetest.Run(t, "served", a, b)
		},
		"predicted": func() *record.Run {
			a, b, c := comparetest.Measured(comparetest.Browser(6), comparetest.Page()), comparetest.Native(6),
				comparetest.Served(6)
			part := comparetest.Predict
			a.Prediction = &record.Prediction{Source: "webllm-package",
				Setup: map[string]string{"context": "256", "kv_dtype": "f16"},
				Notes: []string{"the library says what its functions use"},
				Parts: []record.Predicted{part(figure.ModelWeights, 4.004, 4.004, 4.004, "f32"),
					part(figure.KVCache, 0.27, 0.27, 0.27, "f16"), part(figure.KVCacheUsed, 0.06, 0.06, 0.07, "f32"),
					part(figure.Activations, 0.5, 0.9, 1.6, "f32"), part(figure.FrameworkOverhead, 40, 80, 110, ""),
					part(figure.MemoryIncrease, 60, 90, 130, ""), part(figure.TotalMemory, 60, 85, 120, "")}}
			b.Prediction = &record.Prediction{Absent: "the model's shape is not known"}
			b.Risk = &record.Risk{Level: record.RiskMedium,
				Reasons:         []string{"the most that it may take is more than is free"},
				Recommendations: []string{"close other programs"},
				Places: []record.Place{{Name: "ram", Need: 900 << 20, High: 1100 << 20, Free: 1 << 30,
					Level: record.RiskMedium, How: "MemAvailable"}}}
			c.Risk = &record.Risk{Level: record.RiskHigh, Refused: true,
				Reasons:         []string{"32 GiB are needed and 20 free"},
				Recommendations: []string{"a shorter context", "--no-check-oom, if you know better"}}
			return comparetest.Run(t, "predicted", a, b, c)
		},
		"alone":   func() *record.Run { return comparetest.Run(t, "alone", comparetest.Native(6)) },
		"empty":   func() *record.Run { return comparetest.Run(t, "empty") },
		"hostile": func() *record.Run { return comparetest.Run(t, "hostile", hostile()) },
	} {
		if len(names) == 0 || slices.Contains(names, name) {
			made.Lock()
			if made.runs[name] == nil {
				made.runs[name] = run()
			}
			out[name] = []*record.Run{made.runs[name]}
			made.Unlock()
		}
	}
	return out
}

// ownCase is a case for a test that changes it.
func ownCase(t *testing.T, name string) []*record.Run {
	t.Helper()
	forget := func() {
		made.Lock()
		defer made.Unlock()
		delete(made.runs, name)
	}
	forget()
	defer forget()
	return cases(t, name)[name]
}

const attack = "</script><script>window.owned=1</script><img src=x onerror=window.owned=2>\"'`{{.}}\x1b[2J\x00\r\n\u202eevil\u2066 שלום"

// hostile has an attack wherever a user, a model or an engine can put text.
func hostile() comparetest.Engine {
	e := comparetest.Measured(comparetest.Browser(2), comparetest.Page())
	e.Cell.Engine, e.Cell.Prompt, e.Cell.Model.Name, e.Text = "e"+attack, attack, attack, attack
	e.Info.Name, e.Info.Version, e.Info.Args = attack, attack, []string{attack}
	e.Info.Origin, e.Info.Library.Source = attack, attack
	e.Info.Parts, e.Info.Policy = map[string]string{attack: attack}, map[string]string{attack: attack}
	e.Device.Name, e.Device.Detail = attack, map[string]string{attack: attack}
	e.Processes[1].Role = attack
	e.Warnings = []record.Warning{{Code: attack, Text: attack}}
	return e
}

// absurd has a forecast, and an engine that is looked into.
func absurd() comparetest.Engine {
	e := comparetest.Measured(comparetest.Browser(6), comparetest.Page())
	e.Prediction = &record.Prediction{Parts: []record.Predicted{comparetest.Predict(figure.ModelWeights, 4, 4, 4,
		"f32"), comparetest.Predict(figure.FrameworkOverhead, 4, 5, 6, "")}}
	return e
}

func TestTableFitsATerminal(t *testing.T) {
	long := comparetest.Browser(6)
	long.Cell.Engine = strings.Repeat("a-long-engine-name ", 9)
	absurd := comparetest.Run(t, "absurd", absurd())
	for _, a := range absurd.Attempts {
		for i := range a.Metrics {
			a.Metrics[i].Value = 1e308
		}
	}
	noisy := comparetest.Browser(6)
	noisy.Vary = 0.4
	scored := compare.Runs(comparetest.Run(t, "scored", noisy)) // has every column, and wide intervals
	for _, name := range []string{figure.Perplexity, figure.Top1, figure.KL} {
		scored.Cells[0].Figures = append(scored.Cells[0].Figures, evidence.Figure{Name: name, Title: name, N: 6,
			Median: new(12.345), Interval: &stats.Interval{Lo: 1.0625, Hi: 98.765}})
	}
	all := renderings(t)
	all["scored"] = rendering{res: scored}
	all["absurd"] = rendering{res: compare.Runs(absurd)}
	all["long"] = rendering{res: compare.Runs(comparetest.Run(t, "long", long, comparetest.Native(6)))}
	for name, r := range all { // gates, sweeps, several runs, hostile names
		fits(t, name, r.res)
		var b bytes.Buffer
		check.Err(t, errors.Join(reports.Comparison(&b, r.res), reports.Details(&b, r.res)))
		for _, l := range strings.Split(b.String(), "\n") {
			if n := utf8.RuneCountInString(l); n > 100 {
				t.Errorf("%s: %d columns: %s", name, n, l)
			}
			if strings.ContainsAny(l, "\x1b\x00\u202e\u2066") {
				t.Errorf("a terminal would act on %q", l)
			}
		}
	}
}

func TestProfile(t *testing.T) {
	run := cases(t, "mixed")["mixed"][0]
	res := compare.Runs(run)
	for _, c := range run.Cells {
		golden(t, "profile-"+c.Engine+".json", func(w io.Writer) error { return reports.Profile(w, res, c.ID) })
	}
	if err := reports.Profile(io.Discard, res, 99); fault.Of(err) != fault.Usage {
		t.Errorf("a cell that is not there: %v", err)
	}
	var lost bytes.Buffer
	check.Err(t, reports.Profile(&lost, compare.Runs(cases(t, "lost")["lost"]...), 1))
	if strings.Contains(lost.String(), `"peak": {
      "total_gb"`) || strings.Contains(lost.String(), "latency_stats") {
		t.Errorf("what was not measured must be absent:\n%s", lost.String())
	}
}

// A profile has the warnings of its cell, its launches and its run, and those of no other cell: not of one whose name
// begins with its own.
func TestProfileHasItsCellsWarnings(t *testing.T) {
	engines := manyEngines(4)
	for i := range engines {
		engines[i].Cell.Engine, engines[i].Cell.Repetitions = "engine", 8
		engines[i].Cell.PromptID, engines[i].Cell.Prompt = i, fmt.Sprint("prompt ", i)
		engines[i].Failing = map[int]record.Class{i + 1: record.Class(fmt.Sprint("class-", i))}
		engines[i].Warnings = []record.Warning{{Code: "setting-ignored", Text: fmt.Sprint("of engine ", i)}}
	}
	run := comparetest.Run(t, "four", engines...)
	run.Environment.Background = &record.Background{Seconds: 1, Cores: 6}
	res := compare.Runs(run)
	for i := range engines {
		text := rendered(t, func(w io.Writer) error { return reports.Profile(w, res, i+1) })
		if !strings.Contains(text, "busy-machine") {
			t.Errorf("%d has not its run's warning", i)
		}
		for n := range engines {
			for _, words := range []string{fmt.Sprint("class-", n), fmt.Sprint("of engine ", n)} {
				if strings.Contains(text, words) != (n == i) {
					t.Errorf("the profile of cell %d, and %q: %s", i, words, text)
				}
			}
		}
	}
}

// Devices are under the names of memory profiles, each by itself and together; the parts of a divided one have their
// memory, and are no devices more.
func TestProfileOfGPUs(t *testing.T) {
	for name, roles := range map[string][]string{"several": {"gpu0", "gpu1"},
		"divided": {"gpu0", "gpu0.mig1", "gpu0.mig2"}} {
		e := comparetest.Native(2)
		e.Device = record.Device{Class: record.GPU, Name: "Example"}
		run := comparetest.Run(t, "gpu", e)
		for _, a := range run.Attempts {
			for i, role := range roles {
				a.Sources[90+i] = record.Source{Role: role, Method: "nvml"}
				metric(a, 90+i, "memory_used_bytes", float64(1+2*i)*(1<<30))
			}
			a.Sources[99] = record.Source{Role: "server", Method: "nvml_process", PID: 4000}
			metric(a, 99, "gpu_memory_bytes", 2<<30)
			metric(a, 99, "gpu0.gpu_memory_bytes", 1<<30)
			metric(a, 99, "gpu1.gpu_memory_bytes", 1<<30)
		}
		golden(t, "profile-gpus-"+name+".json",
			func(w io.Writer) error { return reports.Profile(w, compare.Runs(run), e.Cell.ID) })
	}
}

func TestFileIsWholeOrUntouched(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	write := func(path, text string, err error) error {
		return reports.File(path, "name another file with -o", func(w io.Writer) error {
			return errors.Join(err, json.NewEncoder(w).Encode(text))
		})
	}
	check.Err(t, write(path, "old", nil))
	if err := write(path, "half", io.ErrUnexpectedEOF); err == nil {
		t.Error("a renderer that fails is no error")
	}
	if text, _ := os.ReadFile(path); string(text) != "\"old\"\n" {
		t.Errorf("the file holds %q", text)
	}
	for _, path := range []string{filepath.Join(dir, "no", "x"), dir} {
		if err := write(path, "new", nil); fault.Of(err) != fault.Unwritable ||
			!strings.Contains(err.Error(), "; name another file with -o") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTableShowsTextParity(t *testing.T) {
	for text, want := range map[string]string{"": "as text", "the": "differs from byte 1",
		" the river is": "differs from byte 12"} {
		a, b := comparetest.Served(1), comparetest.Served(1)
		b.Cell.ID, b.Cell.Engine = 4, "other"
		if usage := b.Usage; text != "" {
			b.Usage = func(u *record.Usage) { usage(u); u.Text = text }
		}
		var out strings.Builder
		check.Err(t, reports.Markdown(&out, compare.Runs(comparetest.Run(t, "texts", a, b))))
		_, rows, _ := strings.Cut(out.String(), "## Summary")
		_, rows, _ = strings.Cut(rows, "---|\n")
		for _, row := range strings.Split(rows, "\n")[:2] {
			if !strings.HasSuffix(row, "| "+want+" |") {
				t.Errorf("%q: %q, want %s", text, row, want)
			}
		}
	}
}

// What is no file keeps its place: a report for /dev/null must not take the device away from everybody.
func TestFileWritesToDevices(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, out)
	}
	read := make(chan string)
	go func() {
		text, _ := os.ReadFile(pipe) // an error is an empty text
		read <- string(text)
	}()
	check.Err(t, reports.File(pipe, "", func(w io.Writer) error {
		_, err := io.WriteString(w, "all of it")
		return err
	}))
	if got := <-read; got != "all of it" {
		t.Errorf("read %q", got)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode().IsRegular() {
		t.Errorf("the pipe became %v, %v", info, err)
	}
	if err := reports.File(t.TempDir(), "", func(io.Writer) error { return nil }); err == nil {
		t.Error("a folder was written to")
	}
}

// A page that is sent by mail or opened on a phone has an end: what is left out of it stands in the run's folder, and
// the page says so.
func TestPageOfManyLaunchesStaysSmall(t *testing.T) {
	var engines []comparetest.Engine
	for i := range 10 {
		for _, e := range []comparetest.Engine{comparetest.Measured(comparetest.Browser(20), comparetest.Page()),
			comparetest.Native(20)} {
			e.Cell.ID, e.Cell.PromptID, e.Cell.InputTokens = len(engines), i+1, 16<<i
			e.Cell.Prompt = fmt.Sprintf("a prompt of %d tokens", e.Cell.InputTokens)
			e.Prediction = &record.Prediction{Source: "arithmetic", Parts: []record.Predicted{
				comparetest.Predict(figure.ModelWeights, 4.004, 4.004, 4.004, "f32"),
				comparetest.Predict(figure.FrameworkOverhead, 40, 80, 110, ""),
				comparetest.Predict(figure.MemoryIncrease, 60, 90, 130, "")}}
			engines = append(engines, e)
		}
	}
	run := comparetest.Run(t, "many", engines...)
	if len(run.Attempts) != 400 {
		t.Fatalf("%d launches", len(run.Attempts))
	}
	const most = 3 << 20
	page := pageOf(t, compare.Runs(run), run)
	if len(page) > most {
		t.Errorf("a report of 400 launches has %d bytes, at most %d are a page", len(page), most)
	}
	if n := strings.Count(page, " of 20 launches are drawn, to keep the page small"); n != 20 {
		t.Errorf("%d of 20 charts say how many launches they leave out", n)
	}
}

// sweep is a validation of two runs, one of which has nothing to hold against anything, and a broken folder.
func sweep(t *testing.T) *memory.Validation {
	v := memory.NewValidation()
	for _, run := range []*record.Run{cases(t, "predicted")["predicted"][0],
		comparetest.Run(t, "before", comparetest.Native(1)), comparetest.Run(t, "hostile", predictedHostile())} {
		v.Add(validate.Predictions(run))
	}
	v.Broken = append(v.Broken, memory.BrokenRun{Dir: "results/broken",
		Error: "results/broken/run.json: unexpected end of JSON input"})
	v.Close()
	return v
}

// predictedHostile has an attack in all that reaches a validation.
func predictedHostile() comparetest.Engine {
	e := hostile()
	e.Cell.Engine = "e|" + attack
	e.Prediction = &record.Prediction{Source: attack, Notes: []string{attack}, Setup: map[string]string{attack: attack},
		Parts: []record.Predicted{{Name: figure.ModelWeights, Low: 1, Best: 9 << 20, High: 10 << 20, DType: attack,
			Method: attack, Confidence: attack}}}
	return e
}

func TestValidationTables(t *testing.T) {
	v := sweep(t)
	golden(t, "validation.txt", func(w io.Writer) error { return reports.ValidationTable(w, v) })
	golden(t, "validation.md", func(w io.Writer) error { return reports.ValidationMarkdown(w, v) })
}
