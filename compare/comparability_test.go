package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/compare/explain"
	"llmparity/compare/settings"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// With thirty cells there are hundreds of pairs: what holds for many is said once, what holds for one is still there,
// by its name.
func TestReasonsOfManyPairsAppearOnce(t *testing.T) {
	var engines []comparetest.Engine
	for i := range 15 {
		for _, e := range []comparetest.Engine{comparetest.Browser(1), comparetest.Native(1)} {
			e.Cell.ID, e.Cell.MaxTokens, e.Cell.Model.Context = len(engines), 8+8*i, 1024
			e.Info.Policy["batch"] = fmt.Sprint(128 * (i + 1))
			if e.Cell.Engine == "llamacpp" {
				e.Info.Policy["mmap"] = "on"
				e.Info.Policy["batch"] = "2048"
			}
			engines = append(engines, e)
		}
	}
	engines[7].Failing = map[int]record.Class{1: record.OOM}
	res := compare.Runs(comparetest.Run(t, "many", engines...))
	if len(res.Comparisons) != 15 { // each with its like
		t.Fatalf("%d pairs", len(res.Comparisons))
	}
	said := strings.Join(res.Comparability, "\n")
	if len(res.Comparability) > 12 || len(said) > 4000 {
		t.Errorf("%d lines, %d letters:\n%s", len(res.Comparability), len(said), said)
	}
	check.Has(t, said, "not comparable here: WebGPU ran on the CPU (SwiftShader), so this is not a browser-versus-native "+
		"comparison (webllm and llamacpp: 14 of 15 pairs of cells)",
		"not comparable here: no launch of llamacpp counts (llamacpp, 32 tokens and webllm, 32 tokens)")
	row := func(rows []settings.Setting, name string) (out settings.Setting) {
		for _, s := range rows {
			if s.Name == name {
				out = s
			}
		}
		return out
	}
	s := res.Settings
	if batch := row(s.Rows, "batch"); batch.Same || strings.Join(batch.Values, " | ") != "128, 256, 384, 512, 640 and 10 more | 2048" {
		t.Errorf("%+v", batch)
	}
	if kv := row(s.Rows, "kv_dtype"); !kv.Same || kv.Title != "KV cache dtype" {
		t.Errorf("%+v", kv)
	}
	if only := row(s.Only, "mmap"); strings.Join(only.Values, "|") != "|on" || row(s.Rows, "mmap").Name != "" {
		t.Errorf("%+v", only)
	}
}

// Cells without an equal partner are compared with those that differ least, and refused.
func TestLengthsOfOneEngineAreNotCompared(t *testing.T) {
	var engines []comparetest.Engine
	for i := range 3 {
		for n, e := range []comparetest.Engine{comparetest.Browser(1), comparetest.Native(1)} {
			e.Cell.ID, e.Cell.MaxTokens = len(engines), 8+8*i+n
			engines = append(engines, e)
		}
	}
	res := compare.Runs(comparetest.Run(t, "many", engines...))
	if said := strings.Join(res.Comparability, "\n"); len(res.Comparisons) != 9 ||
		!strings.Contains(said, "not comparable here: output length differs") {
		t.Errorf("%d pairs: %s", len(res.Comparisons), said)
	}
}

// Runs with one name are named by the shortest unique end of their folders.
func TestRunsOfOneNameAreLabelledByFolder(t *testing.T) {
	a, b, c := comparetest.Run(t, "same", comparetest.Native(1)), comparetest.Run(t, "same", comparetest.Native(1)),
		comparetest.Run(t, "other", comparetest.Native(1))
	a.Dir, b.Dir, c.Dir = "/long/way/to/monday/latest", "/long/way/to/tuesday/latest", "/long/way/to/other"
	var got []string
	for _, f := range compare.Runs(a, b, c).Families {
		got = append(got, f.A+" | "+f.B)
	}
	if want := "monday/latest | tuesday/latest"; len(got) != 2 || got[0] != want || got[1] != "monday/latest | other" {
		t.Errorf("%q, want %q first", got, want)
	}
}

// Forms of a model for two engines are compared, and their ratios marked. A form of the same engine must be the same.
func TestFormsOfModelAreComparedAndMarked(t *testing.T) {
	a, b := comparetest.Native(6), comparetest.Native(6)
	for i, e := range []*comparetest.Engine{&a, &b} {
		e.Cell.ID, e.Cell.Model.Name, e.Cell.Model.Form = i+1, "llama", []string{"a.gguf", "b.gguf"}[i]
	}
	a.Cell.Engine, b.Cell.Engine, b.Cell.Model.SHA256 = "a", "b", "other"
	run := comparetest.Run(t, "forms", a, b)
	r := compare.Runs(run)
	if len(r.Comparisons) != 1 || len(r.Comparisons[0].Ratios) == 0 ||
		r.Comparisons[0].Ratios[0].Different != "weights: same model, other weights" {
		t.Errorf("%+v", r.Comparisons)
	}
	if r.Cells[0].Label != "a" || r.Cells[1].Label != "b" {
		t.Errorf("labels %q and %q", r.Cells[0].Label, r.Cells[1].Label)
	}
	a.Cell.Model.SHA256 = "another file"
	for _, c := range compare.Runs(run, comparetest.Run(t, "later", a, b)).Comparisons {
		if c.A == 0 && c.B == 2 {
			t.Error("another form of an engine is compared with the former one")
		}
	}
}

// Forms whose weights were found to be the same are compared as one file; of others it is said what differs.
func TestFormsAreComparedByTheirWeights(t *testing.T) {
	a, b := comparetest.Native(6), comparetest.Browser(6)
	for i, e := range []*comparetest.Engine{&a, &b} {
		e.Cell.ID, e.Cell.Model.Name, e.Cell.Model.Form = i+1, "llama", []string{"a.gguf", "b"}[i]
	}
	b.Cell.Model.SHA256 = "other"
	forms := func() *compare.Result {
		return compare.With(compare.Rules{AllowDifferent: true}, comparetest.Run(t, "forms", a, b))
	}
	model := func(r *compare.Result) explain.Check {
		return r.Runs[0].Checklist[slices.IndexFunc(r.Runs[0].Checklist,
			func(c explain.Check) bool { return c.Item == explain.SameModel })]
	}
	b.Cell.Model.SameAs = a.Cell.Model.SHA256
	r := forms()
	said := strings.Join(r.Comparability, "\n")
	if len(r.Comparisons) != 1 || strings.Contains(said, "other weights") ||
		!strings.Contains(said, "weights: same weights, compared value by value") {
		t.Errorf("%d comparisons: %s", len(r.Comparisons), said)
	}
	for _, d := range r.Comparisons[0].Different {
		if strings.HasPrefix(d, "weights") {
			t.Errorf("marked: %s", d)
		}
	}
	if c := model(r); c.Answer != explain.Yes || !strings.Contains(c.Why, "compared value by value") {
		t.Errorf("%+v", c)
	}
	b.Cell.Model.SameAs, b.Cell.Model.Differs = "",
		record.Relation{Code: record.OtherValues, Detail: "tensor output.weight differs"}
	r = forms()
	if all := r.Comparisons[0].Different; !slices.Contains(all,
		"weights: same model, other weights: tensor output.weight differs") {
		t.Errorf("%q", all)
	}
	if c := model(r); c.Answer != explain.No || !strings.Contains(c.Why, "of b tensor output.weight differs") {
		t.Errorf("%+v", c)
	}
	b.Cell.Model.Differs = record.Relation{Code: record.NotCompared, Detail: "why"}
	if all := forms().Comparisons[0].Different; !slices.Contains(all, "weights: same model, weights not compared: why") {
		t.Errorf("%q", all)
	}
}

// Cells of an engine whose settings a plan varies are named by them, and each is compared with other engines.
func TestVariedSettingsTellCellsApart(t *testing.T) {
	page, worker, other := comparetest.Native(6), comparetest.Native(6), comparetest.Native(6)
	for i, e := range []*comparetest.Engine{&page, &worker, &other} {
		e.Cell.ID, e.Cell.Setup, e.Cell.Engine = i+1, 1, "a"
	}
	page.Cell.Settings = map[string]string{"thread": "page"}
	worker.Cell.Settings = map[string]string{"thread": "worker"}
	worker.Cell.Setup, other.Cell.Engine = 2, "b"
	run := comparetest.Run(t, "axes", page, worker, other)
	r := compare.Runs(run)
	var labels []string
	for _, c := range r.Cells {
		labels = append(labels, c.Label)
	}
	if want := []string{"a, page thread", "a, worker thread", "b"}; !slices.Equal(labels, want) {
		t.Errorf("labels %q, want %q", labels, want)
	}
	if n := len(r.Comparisons); n != 3 {
		t.Errorf("%d comparisons, want one of b with each cell of a, and of these with each other", n)
	}
	if n := len(r.Settings.Sides); n != 3 {
		t.Errorf("the settings have the sides %q", r.Settings.Sides)
	}
	for _, c := range compare.Runs(run, comparetest.Run(t, "again", page, worker, other)).Comparisons {
		a, b := c.A, c.B
		if a < 3 && b >= 3 && b != a+3 {
			t.Errorf("cell %d of the baseline run is compared with cell %d", a, b-3)
		}
	}
}

// If cells of the second run are compared with none of the first, the result says which and why.
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
			"1 of 2 cells (prompt 2, b) of run b not compared with run a, the baseline run: prompts differ"},
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

// Each form of a converted model's weights is compared with the engine that has one form, and described correctly.
func TestEachFormOfWeightsIsSetAgainstTheFile(t *testing.T) {
	web := func(id int, form string, same record.Sameness) comparetest.Engine {
		e := comparetest.Browser(6)
		e.Cell.ID, e.Cell.Setup, e.Cell.Weights = id, id-1, form
		e.Device = record.Device{Class: record.CPU}
		e.Info.Weights = same
		e.Info.Policy = map[string]string{"weights_dtype": "q4_0", "kv_dtype": "f32"}
		return e
	}
	native := comparetest.Native(6)
	native.Cell.ID, native.Cell.Setup = 1, 1
	r := compare.Runs(comparetest.Run(t, "forms", native, web(2, "", record.SameBits),
		web(3, "f32", record.OtherValues)))
	if len(r.Comparisons) != 3 {
		t.Fatalf("%d pairs: each form with the file, and the second form with the first", len(r.Comparisons))
	}
	check.Has(t, strings.Join(r.Comparability, "\n"), "weights: same weights, bit for bit (llamacpp and webllm)",
		"weights: same model, other weights (llamacpp and webllm, weights f32)")
	check.Has(t, strings.Join(answer.Of(r).Facts, "\n"),
		"webllm as-is: same weights, bit for bit; webllm f32: same model, other weights")
}

// A server that ran already and one of our own, on the same file: their words are compared, their figures are not.
func TestOutputsAreComparedWithoutRatios(t *testing.T) {
	of := func(change func(e *comparetest.Engine)) *compare.Result {
		ours, server := comparetest.Native(6), comparetest.Served(6)
		server.Cell.Isolation, server.Usage = record.OfServer, nil
		server.Text = ours.Text
		change(&server)
		return compare.Runs(comparetest.Run(t, "words", ours, server))
	}
	r := of(func(*comparetest.Engine) {})
	if len(r.Parity) != 1 || !r.Parity[0].Identical || !r.Parity[0].ByText || len(r.Parity[0].Unverified) != 0 {
		t.Fatalf("parity: %+v", r.Parity)
	}
	if c := r.Comparisons[0]; len(c.Ratios) != 0 ||
		!strings.Contains(c.Refused, "not comparable here: isolation differs: launch and server") {
		t.Errorf("ratios: %+v", c)
	}
	warned := of(func(e *comparetest.Engine) {
		e.Warnings = []record.Warning{{Code: "weights-unverified", Text: "its weights are not verified"}}
	})
	if p := warned.Parity[0]; !p.Identical ||
		!strings.HasSuffix(p.Verdict, "; weights not verified: served, server") {
		t.Errorf("weights that nobody has verified: %+v", p)
	}
	check.Has(t, answer.Of(warned).Output.Sentence(), "not verified")
}

// Of a model that only servers have there is a name to go by.
func TestServedModelsAreComparedByText(t *testing.T) {
	a, b := comparetest.Served(6), comparetest.Served(6)
	b.Cell.ID, b.Cell.Engine = 4, "other"
	for _, e := range []*comparetest.Engine{&a, &b} {
		e.Cell.Model = record.Model{Name: "large", Format: "served"}
	}
	r := compare.Runs(comparetest.Run(t, "served", a, b))
	if len(r.Parity) != 1 || !r.Parity[0].Identical || len(r.Parity[0].Unverified) != 2 {
		t.Fatalf("parity: %+v", r.Parity)
	}
	if c := r.Comparisons[0]; len(c.Ratios) != 0 || !strings.Contains(c.Refused, "not verified") {
		t.Errorf("%+v", c)
	}
	b.Cell.Model.Name = "small"
	if r := compare.Runs(comparetest.Run(t, "two", a, b)); len(r.Parity) != 0 {
		t.Errorf("of two models: %+v", r.Parity)
	}
}
