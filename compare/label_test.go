package compare_test

import (
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// labelsOf are the labels of cells of WebLLM, and perhaps of a native engine, that a test changes.
func labelsOf(t *testing.T, native bool, n int, change func(i int, c *record.Cell)) []string {
	t.Helper()
	var all []comparetest.Engine
	for i := range n {
		e := comparetest.Browser(1)
		e.Cell.ID = i + 1
		change(i, &e.Cell)
		all = append(all, e)
	}
	if native {
		e := comparetest.Native(1)
		e.Cell.ID = n + 1
		all = append(all, e)
	}
	return labels(compare.Runs(comparetest.Run(t, "labels", all...)))
}

// A label is what differs: what all cells share, their engine too, is not in it.
func TestLabelsAreWhatDiffers(t *testing.T) {
	own := func(key string, values ...string) func(int, *record.Cell) {
		return func(i int, c *record.Cell) { c.Settings = map[string]string{key: values[i]} }
	}
	forms := func(i int, c *record.Cell) {
		c.Model.Name, c.Model.Title = "Smollm2 135M 8k Lc100K Mix1 Ep2", "SmolLM2 135M"
		c.Model.DType = []string{"q4_0", "q4_k_m", "f32"}[i]
		c.Model.SHA256 = c.Model.DType
	}
	for name, test := range map[string]struct {
		native bool
		change func(int, *record.Cell)
		want   []string
	}{
		"nothing": {false, func(int, *record.Cell) {}, []string{"webllm"}},
		"contexts": {false, func(i int, c *record.Cell) { c.Model.Context = 512 << i },
			[]string{"context 512", "context 1024"}},
		"versions": {false, own("webllm_version", "0.2.79", "0.2.80"), []string{"0.2.79", "0.2.80"}},
		"versions and engines": {true, own("webllm_version", "0.2.79", "0.2.80"),
			[]string{"webllm 0.2.79", "webllm 0.2.80", "llamacpp"}},
		"bundles": {true, own("webllm_bundle", "dist/pr-1.js", "/tmp/pr-2.js"),
			[]string{"webllm pr-1", "webllm pr-2", "llamacpp"}},
		"equal base names": {false, own("webllm_bundle", "/b/a/dist/index.js", "/b/b/dist/index.js", "index.js"),
			[]string{"a/dist/index", "b/dist/index", "index"}},
		"words":   {false, own("kernels", "gpu", "mlc"), []string{"gpu kernels", "mlc kernels"}},
		"numbers": {false, own("ubatch", "64", "128"), []string{"ubatch 64", "ubatch 128"}},
		"forms":   {false, forms, []string{"Q4_0", "Q4_K_M", "f32"}},
		"models": {false, func(i int, c *record.Cell) {
			forms(i, c)
			if i == 2 {
				c.Model.Title = "SmolLM2 360M"
			}
		}, []string{"SmolLM2 135M Q4_0", "SmolLM2 135M Q4_K_M", "SmolLM2 360M"}},
		"packages": {false, func(i int, c *record.Cell) {
			c.Model.Name = []string{"SmolLM2-135M-Instruct-q4f16_1-MLC", "Qwen2.5-0.5B-q4f16_1-MLC"}[i]
		}, []string{"SmolLM2 135M Instruct", "Qwen2.5 0.5B"}},
	} {
		n := len(test.want)
		if test.native {
			n--
		}
		if got := labelsOf(t, test.native, n, test.change); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Cells that labels would name alike are told from one another by what differs in the record; only equal cells are
// counted.
func TestEqualLabelsAreSeparated(t *testing.T) {
	for name, test := range map[string]struct {
		change func(int, *record.Cell)
		want   []string
	}{
		"files": {func(i int, c *record.Cell) { c.Model.SHA256 = []string{"aaaaaaaaaa", "bbbbbbbbbb"}[i] },
			[]string{"sha256 aaaaaaaa", "sha256 bbbbbbbb"}},
		"names": {func(i int, c *record.Cell) { c.Model.Name = []string{"m-q4_0", "m-q8_0"}[i] },
			[]string{"m-q4_0", "m-q8_0"}},
		"traffic": {func(i int, c *record.Cell) {
			c.Traffic = &record.Traffic{Loop: record.Batch, Concurrency: 2, Requests: 4 + i}
		}, []string{"requests 4", "requests 5"}},
		"nothing": {func(int, *record.Cell) {}, []string{"webllm", "webllm, the same cell again (2)"}},
	} {
		if got := labelsOf(t, false, 2, test.change); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Cells that an interrupted run has not launched report nothing, which is no difference. Labels name the forms.
func TestLabelsOfAnInterruptedRun(t *testing.T) {
	var all []comparetest.Engine
	for i := range 6 {
		e := comparetest.Browser(1)
		if i%2 == 1 {
			e = comparetest.Native(1)
		}
		m := &e.Cell.Model
		m.DType = []string{"q8_0", "q4_k_m", "q4_0"}[i/2]
		m.Name, m.Title, m.SHA256 = "my-"+m.DType, "SmolLM2 135M", m.DType
		e.Cell.ID = i + 1
		all = append(all, e)
	}
	forms, files := []string{"Q8_0", "Q4_K_M", "Q4_0"}, []string{"my-q8_0", "my-q4_k_m", "my-q4_0"}
	for launched := 1; launched <= 6; launched++ {
		for _, known := range []int{(launched + 1) / 2 * 2, 6} { // cells of a setup are prepared together
			run := comparetest.Run(t, "labels", all...)
			run.Attempts = slices.DeleteFunc(run.Attempts, func(a *record.Attempt) bool { return a.Cell > launched })
			var want []string
			for i := range run.Cells {
				form := forms[i/2]
				if i >= known { // only the plan is
					c := &run.Cells[i]
					c.Model, c.Isolation = record.Model{Name: files[i/2] + ".gguf"}, ""
					form = files[i/2]
				}
				want = append(want, []string{"webllm", "llamacpp"}[i%2]+", "+form)
			}
			if got := labels(compare.Runs(run)); !slices.Equal(got, want) {
				t.Errorf("%d cells launched, %d known: %q, want %q", launched, known, got, want)
			}
		}
	}
}
