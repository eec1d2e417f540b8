package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"llmparity/internal/bench/plan"
)

// The command expands a plan once, with its flags: what is checked, shown and measured is about the same cells. The
// other side of --against is another plan.
func TestCommandExpandsOnce(t *testing.T) {
	racedTest(t)
	own := "exec:mine=" + exampleEngine(t)
	dir := t.TempDir()
	t.Chdir(dir)
	put(t, dir, "p.yaml", "engines: [\""+own+"\"]\nmodel: tiny\nprompts: [A]\nmax_tokens: 2\nrepetitions: 1\n"+
		"warmup: {launches: 0, tokens: 1}\ncheck: false\nparity: false\n")
	n, was := 0, plan.Expanded
	plan.Expanded = func() { n++ }
	t.Cleanup(func() { plan.Expanded = was })
	flags := []string{"--output-len", "1,2", "--contexts", "64,128"}
	with := func(args ...string) []string { return append(args, flags...) }
	for _, c := range []struct {
		name string
		want int
		args []string
	}{
		{"check", 1, []string{"plan", "check", "p.yaml"}},
		{"dry run", 1, with("run", "p.yaml", "--dry-run")},
		{"dry run, both sides", 2, with("run", "p.yaml", "--dry-run", "--against", "p.yaml")},
		{"run", 1, with("run", "p.yaml", "-q")},
		{"resume", 1, []string{"run", "--resume", "results/latest", "-q"}},
	} {
		n = 0
		var out, errors bytes.Buffer
		if code := execute(c.args, &out, &errors); code != 0 || n != c.want {
			t.Errorf("%s ends with %d, expanded %d times, want %d\n%s%s", c.name, code, n, c.want, &out, &errors)
		}
	}
	if r := opened(t, filepath.Join(dir, "results", "latest")); len(r.Cells) != 4 || len(r.Attempts) != 4 {
		t.Errorf("%d cells, %d launches; want 4", len(r.Cells), len(r.Attempts))
	}
}
