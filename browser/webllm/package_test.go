package webllm

import (
	"strings"
	"testing"
)

func TestDifferentComputeDTypesAreReported(t *testing.T) {
	for _, c := range []struct{ dtype, stored, policy string }{
		{F32, F32, ""}, {F32, F16, "dequantised to f32 from f16"}, {F32, "q8_0", "dequantised to f32 from q8_0"},
		{F16, F16, "f16, as stored"}, {F16, F32, "rounded to f16 from f32"},
	} {
		p := Package{DType: c.dtype, Policy: map[string]string{}}
		otherArithmetic(&p, c.stored)
		if p.Policy["weights"] != c.policy || (len(p.Warnings) == 1) != (c.policy != "") {
			t.Errorf("%s from %s: %+v", c.dtype, c.stored, p)
		}
		for _, w := range p.Warnings {
			if w.Code != "weights-differ" || !strings.Contains(w.Text, "are "+c.stored+":") {
				t.Errorf("%s from %s: %+v", c.dtype, c.stored, w)
			}
		}
	}
}
