package main

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/models"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
)

// A catalogue model from a mirror generates the same tokens as the GGUF of the same weights.
func TestCatalogueModelRunsFromMirror(t *testing.T) {
	browserTest(t)
	t.Parallel()
	known, err := builtInCatalogue()
	check(t, err)
	e, err := known.Find("SmolLM2-135M-Instruct-q0f32-MLC")
	check(t, err)
	cmd := program(t, "model", "tiny", "-o", "made")
	well(t, cmd)
	made, mirror := filepath.Join(cmd.Dir, "made", "webllm"), filepath.Join(cmd.Dir, "mirror")
	place := func(from, address string) {
		u, err := url.Parse(address)
		check(t, err)
		to := filepath.Join(mirror, filepath.FromSlash(u.Path))
		check(t, os.MkdirAll(filepath.Dir(to), 0o755))
		check(t, os.Rename(from, to))
	}
	place(filepath.Join(made, mlc.LibraryName), e.Library)
	place(made, e.Model+"/resolve/main")

	run := oneLaunch(t, "webllm", "--model", e.ID, "--mirror", mirror, "--context", "512", "--max-tokens", "24",
		"--prompt", tinytest.Prompts()[1].Text)
	// What is stored under that name must not outlive the test.
	run.Env = append(run.Env, "LLMPARITY_CACHE="+filepath.Join(run.Dir, "cache"))
	well(t, run)
	r := recorded(t, run.Dir)
	m := r.Cells[0].Model
	if m.Name != e.ID || m.Format != models.WebLLM || m.DType != "q0f32" || m.Context != 512 || m.Layers != 2 ||
		m.Hidden != 128 || m.WeightsB != 4*426624 {
		t.Errorf("the model is recorded as %+v", m)
	}
	want := enginetest.Tiny(t, 24)[1].Expected
	for _, a := range r.Attempts {
		said := lastEngine(a)
		source := said.Policy["model_source"]
		if l := said.Library; l == nil || l.Maker != record.Llmparity || source != mirror {
			t.Errorf("the library is %s, the model from %q; llmparity's and %q are right", l, source, mirror)
		}
		for _, q := range a.Measured() {
			if ids := idsOf(q); !slices.Equal(ids, want) {
				t.Errorf("%v, the reference has %v", ids, want)
			}
		}
	}
}
