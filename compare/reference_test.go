package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// builds are cells of WebLLM with these versions and contexts, in the order of a plan. slow is slower by half.
func builds(t *testing.T, slow string, contexts []int, versions ...string) *record.Run {
	t.Helper()
	var all []comparetest.Engine
	for _, v := range versions {
		for _, context := range contexts {
			e := comparetest.Browser(8)
			e.Cell.ID, e.Cell.Setup = len(all)+1, len(all)+1
			e.Cell.Settings, e.Cell.Model.Context = map[string]string{"webllm_version": v}, context
			e.Info.Version = v
			if v == slow {
				e.Token = e.Token * 3 / 2
			}
			all = append(all, e)
		}
	}
	return comparetest.Run(t, "builds", all...)
}

// pairsOf are the pairs of cells that are compared along axes, with the names of their sides.
func pairsOf(r *compare.Result) (out []string) {
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		a, b := r.SideNames(c)
		out = append(out, fmt.Sprintf("%s: %s → %s", strings.Join(c.Axes, ","), a, b))
	}
	return out
}

func wantPairs(t *testing.T, r *compare.Result, want ...string) {
	t.Helper()
	if got := pairsOf(r); !slices.Equal(got, want) {
		t.Errorf("pairs\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestVersionsAreComparedWithTheFirst(t *testing.T) {
	r := compare.Runs(builds(t, "0.2.80", []int{1024}, "0.2.86", "0.2.80", "0.2.79"))
	wantPairs(t, r, "webllm_version: 0.2.86 → 0.2.80", "webllm_version: 0.2.86 → 0.2.79")
	a := answer.Of(r)
	check.Has(t, a.Title, "0.2.80 is the slowest of 3, 30% slower than 0.2.86; ")
	check.Has(t, a.Speed.Sentence(), "0.2.80 is 30% slower than 0.2.86", "0.2.86 and 0.2.79: no difference above")
	if n := len(r.Parity); n != 2 || !r.Parity[0].Identical {
		t.Errorf("%d comparisons of outputs, want one a pair", n)
	}
}

func TestTitleOfTwoBuildsIsTheAnswer(t *testing.T) {
	a := answer.Of(compare.Runs(builds(t, "b", []int{1024}, "a", "b")))
	if want := "b is 30% slower than a; memory and output are the same"; a.Title != want {
		t.Errorf("title %q, want %q", a.Title, want)
	}
	check.Has(t, a.Speed.Sentence(), "a decodes 1.44 times as fast as b (95% CI 1.39 to 1.51)")
	a = answer.Of(compare.Runs(builds(t, "", []int{1024}, "a", "b")))
	check.Has(t, a.Title, "b and a: no difference above ", "% in speed and ", "same tokens")
	check.Has(t, a.Speed.Headline, "No difference above ", "% can be seen")
}

// In a grid, each axis has its reference value, and the other axes stay.
func TestGridIsComparedAlongEachAxis(t *testing.T) {
	wantPairs(t, compare.Runs(builds(t, "", []int{512, 1024}, "a", "b")),
		"context: a, context 512 → a, context 1024",
		"webllm_version: a, context 512 → b, context 512",
		"webllm_version: a, context 1024 → b, context 1024",
		"context: b, context 512 → b, context 1024")
}

func TestReferenceCellIsChosen(t *testing.T) {
	run := builds(t, "", []int{1024}, "a", "b", "c")
	run.Meta.Reference = map[string]string{"webllm_version": "b"}
	wantPairs(t, compare.Runs(run), "webllm_version: b → a", "webllm_version: b → c")
	o := compare.Defaults()
	o.Reference = map[string]string{"webllm_version": "c"}
	check.Err(t, o.Check(run))
	wantPairs(t, compare.With(o, run), "webllm_version: c → a", "webllm_version: c → b")
	for name, value := range map[string]string{"webllm_version": "d", "colour": "red"} {
		o.Reference = map[string]string{name: value}
		err := o.Check(run)
		if err == nil || !strings.Contains(err.Error(), value) && !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

// A bundle in place of a version is one change, and hand-picked cells are compared with the first.
func TestCellsWithoutAGridHaveAReference(t *testing.T) {
	bundle := builds(t, "", []int{1024}, "a", "b")
	bundle.Cells[1].Settings = map[string]string{"webllm_bundle": "pr.js"}
	wantPairs(t, compare.Runs(bundle), "webllm_bundle,webllm_version: a → pr")
	picked := builds(t, "", []int{1024}, "a", "b")
	picked.Cells[1].Model.Context, picked.Cells[1].DType = 512, "f16"
	r := compare.Runs(picked)
	if len(r.Comparisons) != 1 || !slices.Equal(r.Comparisons[0].Axes, []string{"context", "dtype", "webllm_version"}) {
		t.Errorf("%q", pairsOf(r))
	}
}

// Forms of a model are compared; their outputs are not, since other weights generate other text.
func TestFormsOfAModelAreCompared(t *testing.T) {
	run := builds(t, "", []int{1024}, "a", "a", "a")
	for i, name := range []string{"SmolLM2-135M-Q8_0", "SmolLM2-135M-Q4_K_M", "Qwen-Q8_0"} {
		m := &run.Cells[i].Model
		m.Name, m.SHA256, m.Layers = name, name, 30
	}
	r := compare.Runs(run)
	if len(r.Comparisons) != 1 || !slices.Equal(r.Comparisons[0].Axes, []string{"model"}) {
		t.Errorf("%q", pairsOf(r))
	}
	if len(r.Parity) != 0 {
		t.Errorf("outputs of forms are compared: %+v", r.Parity)
	}
}

// Across engines, the first native engine is the reference; the plan can name another.
func TestNativeEngineIsTheReference(t *testing.T) {
	run := comparetest.Run(t, "engines", comparetest.Browser(6), comparetest.Native(6))
	wantPairs(t, compare.Runs(run), ": llamacpp → webllm")
	run.Meta.Reference = map[string]string{"engine": "webllm"}
	wantPairs(t, compare.Runs(run), ": webllm → llamacpp")
}
