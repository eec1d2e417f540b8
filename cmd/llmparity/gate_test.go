package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/baseline"
	"llmparity/internal/bench/plan"
	"llmparity/internal/gates"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/schematest"
	"llmparity/internal/record"
)

// The commands gate and baseline, their exit codes and formats.
func TestGateAndBaseline(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	slower := comparetest.Native(8)
	slower.Token = slower.Token * 5 / 4
	failing := comparetest.Native(8)
	failing.Failing = map[int]record.Class{2: "device-lost"}
	before, after := comparetest.Write(t, root, "before", comparetest.Native(8)),
		comparetest.Write(t, root, "after", slower)
	failed := comparetest.Write(t, root, "failed", failing)
	same := comparetest.Write(t, root, "same", comparetest.Native(8))
	crowded := comparetest.Native(8)
	crowded.Warnings = []record.Warning{{Code: record.ProgramShared, Text: "a server runs outside the launch, too"}}
	beside := comparetest.Write(t, root, "beside", crowded)
	put(t, root, "gate.yaml", "vs_baseline:\n  decode_tps: -5%\n  peak_pss_mb: +3%\n")
	put(t, root, "plan.yaml", "prompts: [a]\ngate: {peak_pss: {max: 1}}\n")
	put(t, root, "ci.yaml", "on: push\njobs: []\n")
	put(t, root, "bad.yaml", "vs_baseline:\n  decode_tsp: -5%\n")
	for _, c := range []struct {
		args string
		code fault.Kind
		want string // in what is printed
	}{
		{"baseline list", "", "No baseline runs in " + baseline.Default},
		{"baseline save main " + before, "", "Saved main"},
		{"baseline save main " + after, fault.Usage, "--replace"},
		{"baseline save main " + root, fault.BadRecord, "not a run folder"},
		{"baseline save a/b " + after, fault.Usage, "becomes a file name"},
		{"baseline list", "", "main  before"},
		{"baseline save crowded " + beside, "", "warning: memory may be too low: llama.cpp, launches 1, 2"},
		{"baseline remove crowded", "", "Removed"},
		{"baseline", "", "save"},
		{"gate " + before + " --max peak_pss_mb=900 --min decode_tps=20", "", "The gate passes: 3 checks."},
		{"gate " + before + " --max peak_pss_mb=9", fault.Gate, "FAIL llama.cpp: peak_pss_mb: median "},
		{"gate " + before + " --baseline main --thresholds gate.yaml", "", "The gate passes"},
		{"gate " + before + " --baseline main", "", "The gate passes: 3 checks. 1 more check can only warn. " +
			"The baseline run is this run itself."},
		{"gate " + same + " --baseline main --max peak_pss_mb=900", "", "The gate passes: 4 checks. 1 more check can only warn. -"},
		{"gate " + after + " --baseline main", fault.Gate,
			"default tolerances: decode_tps -5%, peak_pss_mb +3%, ttft_ms +10% (can only warn)"},
		{"gate " + after + " --baseline mian --inconclusive warn", fault.Usage, `there is no baseline run "mian" in ` +
			baseline.Default + `; did you mean "main"? available: main (--no-baseline ok passes without)`},
		{"gate " + after + " --baseline main --store none", fault.Inconclusive,
			"There is no baseline run \"main\" in none; save one with `llmparity baseline save NAME DIR`."},
		{"gate " + after + " --baseline main --detect decode_tps=40%", fault.Gate, "default tolerances"},
		{"gate " + after + " --baseline main --thresholds gate.yaml", fault.Gate,
			"FAIL llama.cpp: decode_tps: "},
		{"gate " + after + " --baseline " + before + " --vs-baseline decode_tps=-5%", fault.Gate,
			"Baseline run: before of"},
		{"gate " + after + " --baseline main --vs-baseline decode_tps=-40%", "", "; worse, within the tolerance"},
		{"gate " + after + " --baseline main --vs-baseline decode_tps=-40% --detect decode_tps=50%", "", "detect -50%"},
		{"gate " + after + " --baseline main --vs-baseline decode_tps=-40% --detect ttft=50%", fault.Usage,
			"no check holds ttft_ms against the baseline run"},
		{"gate " + after + " --baseline main --vs-baseline decode_tps=-40% --under-test chrome", fault.Usage,
			`--under-test: "chrome", use engine`},
		{"gate " + after + " --vs-baseline decode_tps=-5%", fault.Inconclusive, "no baseline run: "},
		{"gate " + after + " --vs-baseline decode_tps=-5% --no-baseline ok", "", "checks against it are left out"},
		{"gate " + after + " --vs-baseline decode_tps=-5% --inconclusive warn", "", "The gate passes with warnings"},
		{"gate " + after + " --vs-baseline decode_tps=-5% --inconclusive maybe", fault.Usage,
			`--inconclusive: "maybe", use error, warn or off`},
		{"gate " + after + " --baseline mian --vs-baseline decode_tps=-5% --no-baseline ok", "",
			`no baseline run "mian": checks against it are left out`},
		{"gate " + after + " --baseline none/latest --max peak_pss_mb=900", fault.Inconclusive,
			"llmparity baseline save NAME DIR. - INCONCLUSIVE all: decode_tps: no baseline run \"none/latest\""},
		{"gate " + failed + " --max peak_pss_mb=900", fault.Run, "FAIL llama.cpp: all launches succeed: 1 of 8 launches failed"},
		{"gate " + failed + " --max peak_pss_mb=9", fault.Gate, "2 of 2 checks"},
		{"gate " + after, fault.Usage, "the gate has no checks"},
		{"gate " + after + " --thresholds plan.yaml", fault.Usage, "plan.yaml:1: this is a plan; --thresholds needs"},
		{"gate " + after + " --thresholds ci.yaml", fault.Usage, "ci.yaml:1: there are no checks here, but on, jobs"},
		{"gate " + root, fault.BadRecord, "not a run folder"},
		{"gate " + after + " --max peak_pss=many", fault.Usage,
			`--max peak_pss=many: "many" is not a number`},
		{"gate " + after + " --max peak_memory=100", fault.Usage,
			`there is no figure "peak_memory"; the nearest are peak_pss_mb, `},
		{"gate " + after + " --vs-baseline decode_tps=5%", fault.Usage, "lower is worse; use -5% to allow that decrease"},
		{"gate " + after + " --thresholds bad.yaml", fault.Usage,
			"bad.yaml:2: gate.vs_baseline: there is no figure \"decode_tsp\"; the nearest are decode_tps"},
		{"gate " + after + " --thresholds none.yaml", fault.Usage, "--thresholds: open none.yaml"},
		{"gate " + after + " --max peak_pss=1 --format xml", fault.Usage, `unknown format "xml"; available: table`},
		{"gate", fault.Usage, "wrong number of arguments: 0; use: llmparity gate DIR"},
		{"baseline remove main", "", "Removed main."},
		{"baseline remove main", fault.Usage, `there is no baseline run "main"`},
	} {
		stdout, stderr, code := called(strings.Fields(c.args)...)
		if said := fault.OneLine(stdout) + fault.OneLine(stderr); code != c.code.ExitCode() ||
			!strings.Contains(said, fault.OneLine(c.want)) {
			t.Errorf("llmparity %s: %d\n%s%s\nwant %s: %s", c.args, code, stdout, stderr, c.code, c.want)
		}
		if c.code == fault.Gate && stderr != "" {
			t.Errorf("llmparity %s: the verdict is on standard output, and there is more: %s", c.args, stderr)
		}
	}
}

// The golden files of reports have what each format says.
func TestGateFormats(t *testing.T) {
	root := t.TempDir()
	dir := comparetest.Write(t, root, "run", comparetest.Native(8), comparetest.Browser(8))
	// One fails, one is inconclusive, one warns, one passes.
	file := put(t, root, "gate.yaml", "peak_pss_mb: {max: 100}\nbaseline_pss: {max: 1000, engine: llamacpp}\n"+
		"ttft_ms: {max: 1, engine: llamacpp, level: warn}\n")
	out := func(format string) string {
		path := filepath.Join(root, format)
		if stdout, stderr, code := called("gate", dir, "--thresholds", file, "--format", format, "-o",
			path); code != fault.Gate.ExitCode() || stdout != "" {
			t.Errorf("%s: %d %s%s", format, code, stdout, stderr)
		}
		return readFile(t, path)
	}
	document := out("json")
	schematest.Valid(t, "gate", []byte(document))
	if g := decoded[gates.Outcome](t, document); g.Status != gates.Failed || len(g.Checks) != 6 {
		t.Errorf("%+v", g)
	}
	mentions(t, out("junit"), `tests="7" failures="1"`)
	mentions(t, out("markdown"), "## Gate: run")
	mentions(t, out("table"), "FAIL WebLLM: peak_pss_mb: median ")
}

// The verdict is in the run's folder, on the page and in other formats.
func TestRunIsGatedAtEnd(t *testing.T) {
	dir := comparetest.Write(t, t.TempDir(), "run", comparetest.Native(8))
	r, result, err := conclude(dir, &bytes.Buffer{}, false)
	check(t, err)
	g, err := plan.ParseGate([]byte("peak_pss_mb: {max: 9}"), "gate")
	check(t, err)
	optional := *g
	optional.NoBaseline = gates.BaselineOptional
	planned := *g
	planned.Baseline = "main"
	if _, err := gate.Ready(g, "main"); fault.Of(err) != fault.Usage {
		t.Errorf("a baseline run that a flag names, and is not there: %v", err)
	}
	for _, x := range []struct {
		of         *gates.Gate
		name, want string
	}{{&planned, "", `the gate will be inconclusive: there is no baseline run "main"`}, {g, "", ""},
		{&optional, "main", ""}} {
		note, err := gate.Ready(x.of, x.name)
		if err != nil || !strings.HasPrefix(note, x.want) || x.want == "" && note != "" {
			t.Errorf("%q: %v %q", x.name, err, note)
		}
	}
	if _, err := gate.Ready(g, t.TempDir()); fault.Of(err) != fault.BadRecord {
		t.Errorf("a folder that is no run: %v", err)
	}
	var stdout bytes.Buffer
	if err := gateRun(r, result, g, "", &stdout); fault.Of(err) != fault.Gate || !strings.Contains(stdout.String(),
		"FAIL llama.cpp: peak_pss_mb: median ") {
		t.Errorf("%v %s", err, &stdout)
	}
	mentions(t, readFile(t, filepath.Join(dir, "report.html")), `<h2 id="h-gate">Gate`)
	mentions(t, good(t, "report", dir, "--details"), "FAIL llama.cpp: peak_pss_mb: median ")
	mentions(t, good(t, "report", dir), "FAIL llama.cpp: peak_pss_mb: median ")
	mentions(t, good(t, "report", dir, "--format", "markdown"), "### Gate")
	mentions(t, good(t, "report", dir, "--format", "junit"), `name="gate"`)
	document := good(t, "report", dir, "--json")
	mentions(t, document, `"gate": {`)
	schematest.Valid(t, "result", []byte(document))
	// A run that went on since was not judged.
	text := readFile(t, filepath.Join(dir, gate.File))
	put(t, dir, gate.File, strings.Replace(text, `"attempts": 8`, `"attempts": 7`, 1))
	if strings.Contains(good(t, "report", dir, "--json"), `"gate": {`) {
		t.Error("a gate of before is shown")
	}
	put(t, dir, gate.File, "{}")
	fails(t, fault.BadRecord, "remove it", "report", dir, "--json")
}

func TestGateOfPlanIsFound(t *testing.T) {
	dir := comparetest.Write(t, t.TempDir(), "run", comparetest.Native(8))
	put(t, dir, "plan.yaml", "name: run\ngate:\n  level: warn\n  peak_pss_mb: {max: 9}\n")
	mentions(t, good(t, "gate", dir), "WARN llama.cpp: peak_pss_mb: median ")
	put(t, dir, "plan.yaml", "name: run\ngate:\n  peak_pss_mb: 9\n")
	fails(t, fault.Usage, `plan.yaml:3: gate.peak_pss_mb: must be a limit such as {max: 900}, not "9"`, "gate", dir)
}

func TestGateFlagsAddToThePlan(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "plan.yaml", `name: run
gate:
  peak_pss_mb: [{max: 9}, {max: 8, min: 1, engine: llamacpp}]
  decode_tps: {min: 99}
  vs_baseline: {ttft_ms: +1%, decode_tps: -1%}
  parity: {first_divergence: 5}
`)
	file := put(t, dir, "gate.yaml", "decode_tps: {min: 88}\n")
	for want, f := range map[string]gateFlags{
		"peak_pss_mb 0 9, peak_pss_mb 1 8, decode_tps 99 0, ttft_ms 1%, decode_tps -1%, parity 0 5": {},
		"peak_pss_mb 1 0, decode_tps 99 0, peak_pss_mb 0 7, ttft_ms 1%, decode_tps -2%, parity 1 5": {
			max: []string{"peak_pss_mb=7"}, changes: []string{"decode_tps=-2%"}, agreement: "100%"},
		"peak_pss_mb 0 9, peak_pss_mb 0 8, decode_tps 99 0, peak_pss_mb 3 0, ttft_ms 1%, decode_tps -1%, parity 0 5": {
			min: []string{"peak_pss_mb=2", "peak_pss_mb=3"}},
		"decode_tps 88 0":                  {thresholds: file},
		"decode_tps 88 0, peak_pss_mb 0 7": {thresholds: file, max: []string{"peak_pss_mb=7"}},
	} {
		g, err := f.gate(dir)
		check(t, err)
		var got []string
		for _, l := range g.Limits {
			none := new(float64)
			got = append(got, fmt.Sprint(l.Figure.Asked(), " ", *cmp.Or(l.Min, none), " ", *cmp.Or(l.Max, none)))
		}
		for _, c := range g.Changes {
			got = append(got, fmt.Sprintf("%s %g%%", c.Figure.Asked(), 100*c.Change))
		}
		if p := g.Parity; p != nil {
			got = append(got, fmt.Sprint("parity ", p.MinAgreement, " ", p.FirstDiffers))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%+v:\n%s, want\n%s", f, text, want)
		}
	}
}

func TestGateOfARunningRun(t *testing.T) {
	t.Chdir(t.TempDir())
	meta := record.Meta{Name: "on", Started: time.Now()}
	w, err := record.Create("results", meta, record.Environment{}, []byte("name: on\n"))
	check(t, err)
	defer func() { check(t, w.Close(record.OK)) }()
	want := fmt.Sprintf("is still running (process %d); ", os.Getpid())
	fails(t, fault.Inconclusive, want, "gate", "results/latest", "--max", "peak_pss_mb=9")
	fails(t, fault.Usage, want, "baseline", "save", "main", w.Dir())
}
