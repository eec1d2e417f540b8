package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/run"
	"llmparity/internal/schematest"
)

// A real run's events are as the schema says, tell all that a program which waits wants to know, and end with where the
// report is.
func TestEventsOfARun(t *testing.T) {
	cmd := program(t, "run", "--json", "--engines", "llamacpp", "--input-len", "8", "16", "--output-len", "24",
		"--repetitions", "2")
	stdout, stderr, code := output(t, cmd)
	if code != 0 || strings.Contains(stderr, "[") {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var kinds []eventKind
	var all []runEvent
	for line := range strings.Lines(stdout) {
		schematest.Valid(t, "events", []byte(line))
		var e runEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, e)
		kinds = append(kinds, e.Kind)
	}
	for _, want := range []eventKind{eventRecording, eventLaunched, eventPhase, eventTokens, eventEnded} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no event %s in %v", want, kinds)
		}
	}
	last := all[len(all)-1]
	if last.Kind != eventDone || last.Code == nil || *last.Code != 0 || last.Status != record.OK ||
		!strings.HasSuffix(last.Report, "report.html") {
		t.Errorf("the last event is %+v", last)
	}
	ended := slices.DeleteFunc(slices.Clone(all), func(e runEvent) bool { return e.Kind != eventEnded })
	if len(ended) != 6 || ended[5].Launch != 6 || ended[5].Launches != 6 || ended[5].Cells != 2 ||
		ended[5].LeftS == nil || *ended[5].LeftS != 0 {
		t.Errorf("%d ended, the last %+v", len(ended), ended[len(ended)-1])
	}
	if !slices.ContainsFunc(all, func(e runEvent) bool { return e.MemoryB > 0 }) {
		t.Error("no event tells of memory")
	}
}

// A run that fails before it begins ends with an event too.
func TestEventsOfARunThatCantBe(t *testing.T) {
	stdout, _, code := output(t, program(t, "run", "--json", "--engines", "llamacpp", "--llama-server", "/nonexistent"))
	schematest.Valid(t, "events", []byte(stdout))
	var e runEvent
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || code != fault.NoLlamaServer.ExitCode() ||
		e.Kind != eventDone || *e.Code != code || e.Class != fault.NoLlamaServer || e.Status != record.Failed {
		t.Errorf("exit code %d, %v: %s", code, err, stdout)
	}
}

func TestPace(t *testing.T) {
	var p pace
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(d time.Duration, e run.Event) {
		now = now.Add(d)
		e.Launches = 4
		p.take(e, now)
	}
	if _, known := p.rest(now); known {
		t.Error("the rest is known before anything has ended")
	}
	after(0, run.Event{Kind: run.Ended, Launch: 0, Engine: "refused"}) // a cell that was not launched
	if rest, known := p.rest(now); known {
		t.Errorf("%s left, though nothing was launched", rest)
	}
	after(0, run.Event{Kind: run.Launched, Launch: 1, Engine: "slow"})
	for range 5 {
		after(time.Second, run.Event{Kind: run.Generated, Memory: 7})
	}
	if rate := p.rate(now); rate != 1 {
		t.Errorf("%g tokens/s, want 1", rate)
	}
	after(5*time.Second, run.Event{Kind: run.Ended, Launch: 1, Engine: "slow"})
	if rest, known := p.rest(now); !known || rest != 30*time.Second {
		t.Errorf("%s left, want 30 s", rest)
	}
	// what lies between launches is not the next one's
	after(time.Minute, run.Event{Kind: run.Launched, Launch: 2, Engine: "quick"})
	after(2*time.Second, run.Event{Kind: run.Ended, Launch: 2, Engine: "quick"})
	if rest, _ := p.rest(now); rest != 12*time.Second { // two more, of 6 s on the whole
		t.Errorf("%s left, want 12 s", rest)
	}
	after(0, run.Event{Kind: run.Launched, Launch: 3, Engine: "slow"})
	if rest, _ := p.rest(now.Add(4 * time.Second)); rest != 8*time.Second {
		t.Errorf("%s left, want 8 s", rest)
	}
	if p.memory != 0 {
		t.Error("an earlier launch's memory is told")
	}
}
