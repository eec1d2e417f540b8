package reports_test

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports"
)

func methodsOf(t *testing.T, runs ...*record.Run) string {
	t.Helper()
	return rendered(t, func(w io.Writer) error { return reports.Methods(w, compare.Runs(runs...)) })
}

// Each sentence of the methods follows from the record: what a reader could check there is what the text says.
func TestMethodsFollowTheRecord(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*comparetest.Engine)
		of        func(*record.Run)
		want, not string
	}{
		"launches":    {want: "Each of the 2 cells, which are combinations of engine, model and request, was measured in 6 launches."},
		"isolation":   {want: "Launches ran in new processes."},
		"tests":       {want: "with Holm's correction over the "},
		"no warm-up":  {not: "warm-up"},
		"warm-up":     {change: func(e *comparetest.Engine) { e.Warmup = true }, want: "each cell had 1 warm-up launch, which is not counted."},
		"too few":     {change: few, want: "With fewer than 6 launches, there are no confidence intervals.", not: "Mann"},
		"tokens":      {want: "with 4 prompt tokens and 64 generated tokens."},
		"our commit":  {of: func(r *record.Run) { r.Meta.Tool.Commit = "0123456789abcdef" }, want: "llmparity 0.1.0, commit 0123456789ab to"},
		"our changes": {of: func(r *record.Run) { r.Meta.Tool.Commit, r.Meta.Tool.Modified = "0123456789abcdef", true }, want: "commit 0123456789ab, with local changes to"},
		"a commit in our version": {of: func(r *record.Run) {
			r.Meta.Tool.Commit, r.Meta.Tool.Version = "0123456789abcdef", "v0.0.0-1-0123456789ab"
		}, want: "llmparity v0.0.0-1-0123456789ab to"},
		"an engine's commit": {change: func(e *comparetest.Engine) { e.Info.Commit = "feedbeef" }, want: "llamacpp b11434 (commit feedbeef; 1 thread"},
		"a sampled answer": {change: func(e *comparetest.Engine) { e.Cell.Temperature = 0.5 },
			want: "The sampling temperature was 0.5."},
		"a failed launch": {change: func(e *comparetest.Engine) { e.Failing = map[int]record.Class{2: record.OOM} },
			want: "2 of 12 launches failed (oom) and enter no figure."},
		"a refused cell": {change: func(e *comparetest.Engine) {
			if e.Cell.Engine == "llamacpp" {
				e.Refused = errors.New("no such model")
			}
		}, want: "The cell llamacpp was refused: no such model."},
		"a quiet machine": {of: func(r *record.Run) {
			r.Environment.Background = &record.Background{Seconds: 1, Cores: 0.25}
		},
			want: "In the 1.0 s before the run, other programs used 0.25 of 8 cores."},
		"two contexts": {change: func(e *comparetest.Engine) {
			if e.Cell.Engine == "llamacpp" {
				e.Cell.Threads = 2
			}
		}, want: "Cells also differ in threads (default, 2)."},
	} {
		web, llama := comparetest.Browser(6), comparetest.Native(6)
		if c.change != nil {
			c.change(&web)
			c.change(&llama)
		}
		run := comparetest.Run(t, "made-up", web, llama)
		if c.of != nil {
			c.of(run)
		}
		text := methodsOf(t, run)
		if !strings.Contains(text, c.want) || c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%s: want %q and not %q in\n%s", name, c.want, c.not, text)
		}
	}
}

func few(e *comparetest.Engine) { e.Cell.Repetitions = 2 }

// Over several contexts, the methods say where the KV cache's size is from and what a slope is. An engine whose
// library is compiled for each context is listed once.
func TestMethodsOfContexts(t *testing.T) {
	var all []comparetest.Engine
	for i, context := range []int64{256, 512, 1024} {
		page := comparetest.Page()
		page.KVReserved = context << 10
		e := comparetest.Measured(comparetest.Browser(6), page)
		e.Cell.ID, e.Cell.Model.Context = i+1, int(context)
		library := *e.Info.Library
		library.SHA256 = strings.Repeat(string(rune('a'+i)), 12)
		e.Info.Library = &library
		e.Info.Policy = map[string]string{"kv_dtype": "f32", "weights_dtype": "f32",
			"context": strconv.Itoa(int(context))}
		all = append(all, e)
	}
	text := methodsOf(t, comparetest.Run(t, "contexts", all...))
	check.Has(t, text, "SHA-256 aaaaaaaaaaaa, bbbbbbbbbbbb, cccccccccccc",
		"The size of the KV cache was taken from WebGPU buffers of its size in webllm.",
		"Memory per token of the context is the median slope between all pairs of launches of different contexts (Theil–Sen), with "+
			"Sen's interval.")
	if n := strings.Count(text, "webllm 0.2.86"); n != 1 {
		t.Errorf("the engine is named %d times in\n%s", n, text)
	}
}

// Nothing is described where nothing was measured.
func TestMethodsOfNothing(t *testing.T) {
	lost := comparetest.Native(1)
	lost.Failing = map[int]record.Class{1: record.Crash}
	if text := methodsOf(t, comparetest.Run(t, "lost", lost)); strings.Count(text, "\n") != 1 ||
		!strings.HasPrefix(text, "No launch counts") {
		t.Errorf("%q", text)
	}
}

// What a result names can't end an entry, whatever it is called, and no two entries have one key.
func FuzzBibTeX(f *testing.F) {
	for _, s := range []string{"plain", "50% of {a} & b_c", `\end{document}`, "}}", "{{", "a\nb", `"`, "é", "~^#$"} {
		f.Add(s)
	}
	run := comparetest.Run(f, "made-up", comparetest.Native(1))
	f.Fuzz(func(t *testing.T, name string) {
		one, other := *run, *run
		one.Meta.Name, one.Cells = name, []record.Cell{run.Cells[0]}
		one.Cells[0].Model.Name = name
		text := rendered(t, func(w io.Writer) error { return reports.BibTeX(w, compare.Runs(&one, &one, &other)) })
		keys := map[string]bool{}
		for _, entry := range strings.Split(strings.TrimSuffix(text, "\n"), "\n\n") {
			key, _, _ := strings.Cut(entry, ",")
			whole := strings.HasPrefix(key, "@misc{llmparity") && strings.HasSuffix(entry, "\n}")
			if keys[key] || !whole || !closes(entry) {
				t.Fatalf("%q makes the entry\n%s", name, entry)
			}
			keys[key] = true
		}
		if len(keys) != 4 {
			t.Errorf("%d entries for three runs and llmparity in\n%s", len(keys), text)
		}
	})
}

// closes tells whether the last brace of a text closes its first one, as BibTeX counts them, and no line ends a value
// or begins a comment before.
func closes(text string) bool {
	depth := 0
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 && i >= len("@misc") && i < len(text)-1 || depth < 0 {
			return false
		}
	}
	return depth == 0
}
