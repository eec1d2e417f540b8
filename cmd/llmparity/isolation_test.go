package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/record"
)

func TestRepetitionsReuseOneServer(t *testing.T) { reuse(t, "llamacpp") }

func TestRepetitionsReuseOneBrowser(t *testing.T) { reuse(t, "webllm") }

// reuse runs an engine whose repetitions are requests in one launch, and looks whether each stands for itself.
func reuse(t *testing.T, name string) {
	run := program(t, "run", "--engines", name, "--isolation", "reused", "--repetitions", "6", "--max-tokens", "12")
	stdout, stderr, code := output(t, run)
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	r, err := record.Open(filepath.Join(run.Dir, "results", "latest"))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Attempts) != 7 || r.Cells[0].Isolation != record.Reused {
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
		_, told := a.Engine()
		if a.OpenedBy != first.ID || loads || !a.Counted() || !told {
			t.Errorf("repetition %d: opened by %d, load: %v, %s %s", a.Repetition, a.OpenedBy, loads, a.Status, a.Error)
		}
		if of := pids(a); len(of) == 0 || slices.ContainsFunc(of, func(pid int) bool { return !slices.Contains(pids(first), pid) }) {
			t.Errorf("repetition %d was in the processes %v, the first in %v", a.Repetition, of, pids(first))
		}
		if n := len(a.Samples) + len(a.Metrics); len(a.Samples) == 0 || a.Cost.Reads < len(a.Samples) || a.Cost.Reads > n {
			t.Errorf("repetition %d: %d readings and %d values, cost %+v", a.Repetition, len(a.Samples), len(a.Metrics), a.Cost)
		}
		ids := func(a *record.Attempt) (out []int) {
			for _, token := range a.Measured()[0].Tokens {
				out = append(out, token.ID)
			}
			return out
		}
		if !slices.Equal(ids(a), ids(first)) || len(ids(a)) != 12 {
			t.Errorf("repetition %d says %v, the first %v", a.Repetition, ids(a), ids(first))
		}
	}
	if slices.ContainsFunc(pids(r.Attempts[0]), func(pid int) bool { return slices.Contains(pids(first), pid) }) {
		t.Error("the warm-up launch's processes were reused")
	}
	for _, want := range []string{"All 6 repetitions succeeded", "6 repetitions are requests in one launch", "Memory at three points"} {
		if !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}
