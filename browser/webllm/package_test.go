package webllm

import (
	"strings"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/mlc"
	"llmparity/internal/tiny"
	"llmparity/internal/tiny/tinytest"
)

func TestWhatBecomesOfWeightsIsReported(t *testing.T) {
	for _, c := range []struct{ dtype, weights, kind, same, dtypes, warns string }{
		{F32, mlc.AsIs, "", "same weights, bit for bit", "f32", ""},
		{F32, mlc.AsIs, "Q4_0", "same weights, bit for bit", "q4_0", ""},
		{F32, mlc.AsIs, "Q6_K", "same weights, bit for bit", "q6_k", ""},
		{F32, F32, "Q8_0", "same values", "f32", "dequantises them to f32"},
		{F16, mlc.AsIs, "", "same model, other weights", "f16", "rounds matrices and norms and biases"},
		{F16, mlc.AsIs, "Q4_0", "same model, other weights", "q4_0", "rounds norms and biases"},
		{F16, F16, "Q4_0", "same model, other weights", "f16", "rounds matrices and norms and biases"},
	} {
		f := tinytest.Random(t, tiny.Spec{Hidden: 256, Type: c.kind})
		p := Package{DType: c.dtype, Policy: map[string]string{}}
		stored := strings.ToLower(f.Dominant().String())
		check.Err(t, otherArithmetic(&p, f, Options(256, c.dtype, "", c.weights), stored))
		if p.Policy["weights"] != c.same || p.Policy["weights_dtype"] != c.dtypes {
			t.Errorf("%+v: %v", c, p.Policy)
		}
		text := ""
		for _, w := range p.Warnings {
			if w.Code != "weights-differ" {
				t.Errorf("%+v: %+v", c, w)
			}
			text += w.Text
		}
		if !strings.Contains(text, c.warns) || (text == "") != (c.warns == "") {
			t.Errorf("%+v: warnings %q", c, text)
		}
	}
}
