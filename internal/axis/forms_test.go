package axis_test

import (
	"testing"

	"llmparity/internal/axis"
	"llmparity/internal/record"
)

func TestFormNames(t *testing.T) {
	for name, want := range map[string][2]string{
		"SmolLM2-135M-Instruct-Q4_K_M":      {"Q4_K_M", "SmolLM2 135M Instruct"},
		"Llama-3.2-1B-Instruct-q4f16_1-MLC": {"q4f16_1", "Llama 3.2 1B Instruct"},
		"smol.q8_0":                         {"Q8_0", "smol"},
		"Smollm2 135M":                      {"Q5_K_S", "Smollm2 135M"},
		"Q8_0":                              {"Q8_0", "Q8_0"},
	} {
		m := &record.Model{Name: name, DType: "q5_k_s"}
		if form, family := axis.FormName(m), axis.Called(m); form != want[0] || family != want[1] {
			t.Errorf("%s: %q of %q, want %q", name, form, family, want)
		}
	}
}

func TestFamilyHasForms(t *testing.T) {
	a := record.Model{Name: "a-Q8_0", Layers: 2}
	b, c := a, a
	b.Name, c.Layers = "a-f16", 3
	if axis.Family(&a) != axis.Family(&b) || axis.Family(&a) == axis.Family(&c) || axis.Family(&record.Model{}) != "" {
		t.Errorf("%q, %q, %q", axis.Family(&a), axis.Family(&b), axis.Family(&c))
	}
}

// Files of one dtype are named by their files, without what all names have in common.
func TestFormsOfOneDTypeHaveTheirFilesNames(t *testing.T) {
	for _, c := range []struct{ files, dtypes, want []string }{
		{[]string{"smol-135M.Q4_1", "smol-135M-Q8_0", "smol-135M-Q6_K"}, []string{"q4_1", "q8_0", "q8_0"},
			[]string{"Q4_1", "Q8_0", "Q6_K"}},
		{[]string{"a-Q8_0", "a-Q6_K", "b"}, []string{"q8_0", "q8_0", "q4_0"}, []string{"a-Q8_0", "a-Q6_K", "Q4_0"}},
		{[]string{"a-Q8_0", "a-Q6_K", "a-x"}, []string{"q8_0", "q8_0", "q6_k"}, []string{"Q8_0", "a-Q6_K", "Q6_K"}},
		{[]string{"a", "a-b"}, []string{"q8_0", "q8_0"}, []string{"a", "a-b"}},
	} {
		var all []*record.Model
		for i, file := range c.files {
			all = append(all, &record.Model{Name: "m", File: "models/" + file + ".gguf", DType: c.dtypes[i],
				SHA256: file})
		}
		for i, m := range all {
			if got := axis.FormNameAmong(m, all); got != c.want[i] {
				t.Errorf("%s of %q: %q, want %q", c.files[i], c.files, got, c.want[i])
			}
		}
	}
}
