package main

import (
	"slices"
	"strings"
	"testing"

	"llmparity/internal/bench/progress"
	"llmparity/internal/bench/run"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/schematest"
	"llmparity/internal/record"
)

// Events match the schema, report progress, and end with the report's path.
func TestEventsOfRun(t *testing.T) {
	racedTest(t)
	t.Parallel()
	stdout, stderr := well(t, program(t, "run", "--json", "--engines", "llamacpp", "--input-len", "8", "16",
		"--output-len", "24", "--repetitions", "1"))
	if strings.Contains(stderr, "[") {
		t.Error(stderr)
	}
	var kinds []run.EventKind
	var all []progress.Line
	for line := range strings.Lines(stdout) {
		schematest.Valid(t, "events", []byte(line))
		all = append(all, decoded[progress.Line](t, line))
		kinds = append(kinds, all[len(all)-1].Kind)
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
	racedTest(t)
	stdout, _ := ends(t, program(t, "run", "--json", "--engines", "llamacpp", "--llama-server", "/nonexistent"),
		fault.NoLlamaServer)
	schematest.Valid(t, "events", []byte(stdout))
	if e := decoded[progress.Line](t, stdout); e.Kind != "done" || *e.Code != fault.NoLlamaServer.ExitCode() ||
		e.Class != fault.NoLlamaServer || e.Status != record.Failed {
		t.Error(stdout)
	}
}
