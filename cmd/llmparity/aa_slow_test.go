//go:build slow

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/stats"
	"llmparity/internal/cache"
	"llmparity/internal/record"
)

// Ten launches against ten of the same, of real engines on this machine: nothing is called different. The launches of
// both sides are taken in turns, as a comparison of two builds should be run: those of one plan are dealt out to two
// records, so that whatever the machine does meanwhile falls on both. One family of equals in twenty may be called
// different, which is what is promised; so what is called different is measured once more, and must not be again.
func TestEqualRunsDoNotDiffer(t *testing.T) {
	moved(t)
	const text = "name: same\nengines: [webllm, llamacpp]\nmodel: tiny\nmax_tokens: 32\ntemperature: 0\ncontext: 512\nrepetitions: 20\ntimeout: 3m\n" +
		"warmup:\n  launches: 1\n  tokens: 8\nprompts:\n  - The clocks were striking\n"
	check(t, os.WriteFile("same.yaml", []byte(text), 0o644))
	called := sameOrNot(t)
	if len(called) == 0 {
		return
	}
	for engine, verdict := range sameOrNot(t) {
		if before := called[engine]; before != "" {
			t.Errorf("%s is called different twice:\n%s\n%s", engine, before, verdict)
		}
	}
}

// sameOrNot runs the plan, and says of which engines something was called different, and in which words.
func sameOrNot(t *testing.T) map[string]string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := execute([]string{"run", "same.yaml"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	whole, err := record.Open(filepath.Join("results", "latest"))
	check(t, err)
	res := compare.Runs(dealt(whole, 0), dealt(whole, 1))
	same, called := 0, map[string]string{}
	for _, c := range res.Comparisons {
		if res.Cells[c.A].Run == res.Cells[c.B].Run {
			continue // one engine against the other
		}
		same++
		if c.Refused != "" || len(c.Ratios) < 5 {
			t.Errorf("%s: %d ratios; %s", res.Cells[c.A].Label, len(c.Ratios), c.Refused)
		}
		for _, x := range c.Ratios {
			t.Log(x.Verdict)
			if x.Left.N != 10 || x.Right.N != 10 {
				t.Errorf("%s: of %d and %d launches", x.Verdict, x.Left.N, x.Right.N)
			}
			if x.Significant || x.Call != stats.Chance {
				called[res.Cells[c.A].Spec.Engine] = x.Verdict
			}
		}
	}
	if same != 2 {
		t.Errorf("%d engines were set against themselves", same)
	}
	return called
}

// dealt is a run with every second of each cell's launches.
func dealt(whole *record.Run, which int) *record.Run {
	out := *whole
	out.Meta.Name += []string{" (even)", " (odd)"}[which]
	out.Attempts = slices.DeleteFunc(slices.Clone(whole.Attempts),
		func(a *record.Attempt) bool { return a.Repetition%2 != which || a.Warmup })
	return &out
}

// moved has the test in a folder of its own, with all that is made on the way.
func moved(t *testing.T) string {
	t.Helper()
	dir := shortDir(t)
	t.Setenv("LLMPARITY_CACHE", cache.Dir(os.Getenv)) // before TMPDIR and the folder change
	t.Setenv("TMPDIR", dir)
	t.Chdir(dir)
	return dir
}
