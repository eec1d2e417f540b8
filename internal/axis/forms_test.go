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
