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

// Of ten launches against ten of the same plan, no figure is called different. Both sides alternate. One family in
// twenty may differ by chance, so a difference is measured again.
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

// sameOrNot runs the plan and returns the engines that were called different, with the report's sentences.
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

// dealt returns every second launch of each cell.
func dealt(whole *record.Run, which int) *record.Run {
	out := *whole
	out.Meta.Name += []string{" (even)", " (odd)"}[which]
	out.Attempts = slices.DeleteFunc(slices.Clone(whole.Attempts),
		func(a *record.Attempt) bool { return a.Repetition%2 != which || a.Warmup })
	return &out
}

// moved changes to a temporary folder.
func moved(t *testing.T) string {
	t.Helper()
	dir := shortDir(t)
	t.Setenv("LLMPARITY_CACHE", cache.Dir(os.Getenv)) // before TMPDIR and the folder change
	t.Setenv("TMPDIR", dir)
	t.Chdir(dir)
	return dir
}
