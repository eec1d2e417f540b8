package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/progress"
	"llmparity/internal/record"
	"llmparity/internal/run"
	"llmparity/internal/schematest"
)

// Events match the schema, report progress, and end with the report's path.
func TestEventsOfRun(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "--json", "--engines", "llamacpp", "--input-len", "8", "16", "--output-len", "24",
		"--repetitions", "1")
	stdout, stderr, code := output(t, cmd)
	if code != 0 || strings.Contains(stderr, "[") {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var kinds []run.EventKind
	var all []progress.Line
	for line := range strings.Lines(stdout) {
		schematest.Valid(t, "events", []byte(line))
		var e progress.Line
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, e)
		kinds = append(kinds, e.Kind)
	}
	for _, want := range []run.EventKind{"recording", "launched", "phase", "tokens", "ended"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no event %s in %v", want, kinds)
		}
	}
	last := all[len(all)-1]
	if last.Kind != "done" || last.Code == nil || *last.Code != 0 || last.Status != record.OK ||
		!strings.HasSuffix(last.Report, "report.html") {
		t.Errorf("the last event is %+v", last)
	}
	ended := slices.DeleteFunc(slices.Clone(all), func(e progress.Line) bool { return e.Kind != "ended" })
	if len(ended) != 4 || ended[3].Launch != 4 || ended[3].Launches != 4 || ended[3].Cells != 2 ||
		ended[3].LeftS == nil || *ended[3].LeftS != 0 {
		t.Errorf("%d ended, the last %+v", len(ended), ended[len(ended)-1])
	}
	if !slices.ContainsFunc(all, func(e progress.Line) bool { return e.MemoryB > 0 }) {
		t.Error("no event has memory")
	}
}

func TestEventsOfRunThatCannotStart(t *testing.T) {
	stdout, _, code := output(t, program(t, "run", "--json", "--engines", "llamacpp", "--llama-server", "/nonexistent"))
	schematest.Valid(t, "events", []byte(stdout))
	var e progress.Line
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || code != fault.NoLlamaServer.ExitCode() ||
		e.Kind != "done" || *e.Code != code || e.Class != fault.NoLlamaServer || e.Status != record.Failed {
		t.Errorf("exit code %d, %v: %s", code, err, stdout)
	}
}
