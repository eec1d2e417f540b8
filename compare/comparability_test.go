package compare_test

import (
	"fmt"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/settings"
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
	for _, want := range []string{"not comparable here: WebGPU ran on the CPU (SwiftShader), so this is not a browser-versus-native " +
		"comparison (webllm and llamacpp: 14 of 15 pairs of cells)",
		"not comparable here: no launch of llamacpp counts (webllm, 32 tokens and llamacpp, 32 tokens)"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
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

// Cells that have no like are set against all that nearly are, and refused.
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
		!strings.Contains(said, "not comparable here: max_tokens differs") {
		t.Errorf("%d pairs: %s", len(res.Comparisons), said)
	}
}

// Runs with one name are told apart by no more of their folders than that takes.
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
