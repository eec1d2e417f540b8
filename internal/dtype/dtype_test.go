package dtype

import (
	"slices"
	"strings"
	"testing"
)

// A name means one dtype, and a number of GGUF, too.
func TestNamesAreUnique(t *testing.T) {
	seen, ids := map[string]string{}, map[uint32]string{}
	for _, d := range all {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(append([]string{d.Name, strings.ToLower(d.GGUF),
			d.Torch}, d.Also...)))) {
			if other, twice := seen[name]; twice && name != "" {
				t.Errorf("%s is %s and %s", name, other, d.Name)
			}
			seen[name] = d.Name
		}
		if other, twice := ids[d.ID]; twice && d.GGUF != "" {
			t.Errorf("%d is %s and %s", d.ID, other, d.Name)
		} else if d.GGUF != "" {
			ids[d.ID] = d.Name
		}
	}
}

func TestNamed(t *testing.T) {
	for name, want := range map[string]string{"torch.float16": "f16", "HALF": "f16", "Q4_K": "q4_k", "U8": "int8",
		"F8_E4M3": "fp8", "q4_k_m": "", "": ""} {
		if d, ok := Named(name); d.Name != want || ok != (want != "") {
			t.Errorf("%q is %q (%v), want %q", name, d.Name, ok, want)
		}
	}
}

// Sizes include the scales, and the end of a row that fills no block.
func TestSizes(t *testing.T) {
	for name, want := range map[string]struct {
		size             int64
		bits             float64
		float, quantised bool
	}{"q4_0": {2 * 3 * 18, 4.5, false, true}, "f32": {2 * 4 * 70, 32, true, false}, "int4": {2 * 35, 4, false, false},
		"fp8": {2 * 70, 8, false, false}, "q6_k": {2 * 210, 6.5625, false, true},
		"bf16": {2 * 2 * 70, 16, true, false}} {
		d, _ := Named(name)
		if d.Size(2, 70) != want.size || d.Bits() != want.bits ||
			d.Float() != want.float || d.Quantised() != want.quantised {
			t.Errorf("%s: %d bytes, %g bits, float %v, quantised %v; want %+v", name, d.Size(2, 70), d.Bits(), d.Float(),
				d.Quantised(), want)
		}
	}
	if d, ok := OfGGUF(99); ok || d.Size(2, 70) != 0 || d.Width() != 0 {
		t.Errorf("an unknown dtype has %+v", d)
	}
}

func TestPacked(t *testing.T) {
	for name, want := range map[string][2]int64{
		"q4f16_1": {10 * 7 * 16, 10 * 7 * 2}, "q4f32_2": {10 * 7 * 16, 10 * 7 * 4},
		"q3f16_1": {10 * 5 * 16, 10 * 5 * 2}} {
		p, ok := PackedAs(name)
		if values, scales := p.Size(10, 200); !ok || [2]int64{values, scales} != want {
			t.Errorf("%s: %d and %d bytes (%v), want %v", name, values, scales, ok, want)
		}
	}
	for _, name := range []string{"q4f16", "q0f16_1", "q4f16_ft", "q5f16_1", "q4_0"} {
		if _, ok := PackedAs(name); ok {
			t.Errorf("%s is taken for a format of MLC's", name)
		}
	}
	for name, want := range map[string]string{"q4f16_1": "f16", "q0f32": "",
		"q4_k_m": "f16", "mxfp4": "e8m0", "f32": "",
		"awq": "f16", "unknown": ""} {
		if got := ScalesOf(name); got != want {
			t.Errorf("scales of %s: %q, want %q", name, got, want)
		}
	}
}
