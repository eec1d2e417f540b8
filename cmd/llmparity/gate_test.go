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
	"llmparity/internal/bench/plan"
	"llmparity/internal/gates"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/schematest"
	"llmparity/internal/record"
)

// The golden files of reports have what each format says.
func TestGateFormats(t *testing.T) {
	lightTest(t)
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
	mentions(t, out("markdown"), "### FAIL: **peak memory ")
	mentions(t, out("table"), "FAIL WebLLM: peak_pss_mb: median ")
}

// The verdict is in the run's folder, on the page and in other formats.
func TestRunIsGatedAtEnd(t *testing.T) {
	lightTest(t)
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
	mentions(t, good(t, "report", dir), "FAIL: peak memory ")
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

func TestGateFlagsAddToThePlan(t *testing.T) {
	lightTest(t)
	dir := t.TempDir()
	put(t, dir, "plan.yaml", `name: run
gate:
  peak_pss_mb: [{max: 9}, {max: 8, min: 1, engine: llamacpp}]
  decode_tps: {min: 99}
  vs_baseline: {ttft_ms: +1%, decode_tps: -1%}
  parity: {first_divergence: 5}
`)
	file := put(t, dir, "gate.yaml", "decode_tps: {min: 88}\n")
	for want, f := range map[string]checkFlags{
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
	lightTest(t)
	t.Chdir(t.TempDir())
	meta := record.Meta{Name: "on", Started: time.Now()}
	w, err := record.Create("results", meta, record.Environment{}, []byte("name: on\n"))
	check(t, err)
	defer func() { check(t, w.Close(record.OK)) }()
	want := fmt.Sprintf("is still running (process %d); ", os.Getpid())
	fails(t, fault.Inconclusive, want, "gate", "results/latest", "--max", "peak_pss_mb=9")
	fails(t, fault.Usage, want, "baseline", "save", "main", w.Dir())
}
