package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
)

func TestRepetitionsReuseOneServer(t *testing.T) {
	racedTest(t)
	reuse(t, "llamacpp")
}

func TestRepetitionsReuseOneBrowser(t *testing.T) {
	racedTest(t)
	reuse(t, "webllm")
}

// reuse runs an engine whose repetitions share a launch, and checks that they are independent.
func reuse(t *testing.T, name string) {
	t.Parallel()
	run := program(t, "run", "--engines", name, "--isolation", "reused", "--repetitions", "3", "--max-tokens", "12")
	well(t, run)
	r := recorded(t, run.Dir)
	if len(r.Attempts) != 4 || !r.Cells[0].Reused || r.Cells[0].Isolation != record.OfLaunch {
		t.Fatalf("%d attempts of %+v", len(r.Attempts), r.Cells[0])
	}
	first := r.Attempts[1] // after the warm-up launch, which is one of its own
	pids := func(a *record.Attempt) (out []int) {
		for _, s := range a.Sources {
			if s.Method == record.MethodStatm && !slices.Contains(out, s.PID) {
				out = append(out, s.PID)
			}
		}
		return out
	}
	for _, a := range r.Attempts[2:] {
		_, loads := a.Phase(record.Load)
		_, reported := a.Engine()
		if a.OpenedBy != first.ID || loads || !a.Counted() || !reported {
			t.Errorf("repetition %d: opened by %d, load: %v, %s %s", a.Repetition, a.OpenedBy, loads, a.Status, a.Error)
		}
		if of := pids(a); len(of) == 0 ||
			slices.ContainsFunc(of, func(pid int) bool { return !slices.Contains(pids(first), pid) }) {
			t.Errorf("repetition %d was in the processes %v, the first in %v", a.Repetition, of, pids(first))
		}
		if n := len(a.Samples) + len(a.Metrics); len(a.Samples) == 0 || a.Cost.Reads < len(a.Samples) ||
			a.Cost.Reads > n {
			t.Errorf("repetition %d: %d readings and %d values, cost %+v", a.Repetition, len(a.Samples), len(a.Metrics),
				a.Cost)
		}
		if ids, want := idsOf(a.Measured()[0]), idsOf(first.Measured()[0]); !slices.Equal(ids, want) || len(ids) != 12 {
			t.Errorf("repetition %d says %v, the first %v", a.Repetition, ids, want)
		}
	}
	if slices.ContainsFunc(pids(r.Attempts[0]), func(pid int) bool { return slices.Contains(pids(first), pid) }) {
		t.Error("the warm-up launch's processes were reused")
	}
	mentions(t, details(t, run.Dir), "Repeatable, right scores. All 3 requests gave the same 12 token ids",
		"3 repetitions ran in 1 launch", "Memory at three points")
}

// ownServer is the llama-server that this process has started; its guard is another.
func ownServer() int {
	for _, pid := range child.Tagged(os.Getpid()) {
		if name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")); err == nil &&
			strings.HasPrefix(string(name), "llama-server") {
			return pid
		}
	}
	return 0
}

// idsOf are the tokens of an answer.
func idsOf(q *record.Request) (ids []int) {
	for _, token := range q.Tokens {
		ids = append(ids, token.ID)
	}
	return ids
}

// A server that dies while idle costs one repetition; the next one starts another server.
func TestServerThatDiesBetweenRepetitions(t *testing.T) {
	racedTest(t)
	m := enginetest.TinyModel(t)
	killed := 0
	p := plan.Plan{Name: "dies", Engines: []string{llamacpp.Name}, Model: m.Path, Prompts: plan.Texts("A"),
		MaxTokens: 8, Context: 64, Warmup: plan.Warmup{Tokens: 1}, Repetitions: 4, Isolation: plan.Reused,
		Timeout: plan.Duration(time.Minute)}
	dir, err := run.Do(t.Context(), run.Options{
		Matrix: expanded(t, p),
		Open: func(context.Context, *plan.Setup) (run.Parts, error) {
			return run.Parts{Model: m, Engines: []engine.Engine{bothEngines()[1]}}, nil
		},
		Out: t.TempDir(),
		Progress: func(e run.Event) {
			if e.Kind != run.Ended || e.Repetition != 2 {
				return
			}
			killed = ownServer()
			if p, err := os.FindProcess(killed); err == nil {
				_ = p.Kill() // it is ours, and there
			}
		}})
	if err == nil || killed == 0 {
		t.Fatalf("%v, killed %d", err, killed)
	}
	r := opened(t, dir)
	if len(r.Attempts) != 4 {
		t.Fatalf("%d attempts", len(r.Attempts))
	}
	dead, next := r.Attempts[2], r.Attempts[3]
	if dead.OpenedBy != 1 || dead.Class != record.Crash || strings.Contains(dead.Error, "\n") {
		t.Errorf("the repetition whose server had died: opened by %d, %s: %s", dead.OpenedBy, dead.Class, dead.Error)
	}
	if _, loads := next.Phase(record.Load); next.OpenedBy != 0 || !loads || !next.Counted() {
		t.Errorf("the next one: opened by %d, load %v, %s %s", next.OpenedBy, loads, next.Status, next.Error)
	}
}
