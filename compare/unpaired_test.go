package compare_test

import (
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// Whoever names two runs is told why the second is set against nothing of the first, and which cell is whose.
func TestUnpairedRunsSayWhy(t *testing.T) {
	run := func(dir string, change ...func(*comparetest.Engine)) *record.Run {
		var engines []comparetest.Engine
		for i, f := range change {
			e := comparetest.Native(6)
			e.Cell.ID, e.Cell.PromptID = i+1, i+1
			f(&e)
			engines = append(engines, e)
		}
		r := comparetest.Run(t, "default", engines...)
		r.Dir = dir
		return r
	}
	as := func(*comparetest.Engine) {}
	prompt := func(text string) func(*comparetest.Engine) {
		return func(e *comparetest.Engine) { e.Cell.Prompt = text }
	}
	for name, c := range map[string]struct {
		a, b *record.Run
		want string
	}{
		"prompts": {run("x/a", as), run("x/b", prompt("another")),
			"cells of run b not compared with run a, the baseline run: prompts differ"},
		"models": {run("x/a", as), run("x/b",
			func(e *comparetest.Engine) { e.Cell.Model.SHA256 = strings.Repeat("b", 64) }),
			"cells of run b not compared with run a, the baseline run: models differ"},
		"cache": {run("x/a", as), run("x/b", func(e *comparetest.Engine) { e.Cell.KVDType = "q8_0" }),
			"cells of run b not compared with run a, the baseline run: KV cache dtypes differ"},
		"part": {run("x/a", prompt("1"), prompt("2")), run("x/b", prompt("1"), prompt("3")),
			"1 of 2 cells (llamacpp, prompt 2, b) of run b not compared with run a, the baseline run: prompts differ"},
		"empty": {run("x/a"), run("x/b", as),
			"cells of run b not compared with run a, the baseline run: the baseline run has no measured cell"},
		"same": {run("x/a", as), run("x/b", as), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := compare.Runs(c.a, c.b)
			of := slices.DeleteFunc(slices.Clone(r.Comparability),
				func(s string) bool { return !strings.Contains(s, "the baseline run: ") })
			if got := strings.Join(of, "\n"); got != c.want {
				t.Errorf("said %q, want %q", got, c.want)
			}
			if all := strings.Join(r.Comparability, "\n"); strings.Contains(all, "nothing to compare") {
				t.Error(all)
			}
		})
	}
}
