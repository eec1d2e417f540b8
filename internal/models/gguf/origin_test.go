package gguf_test

import (
	"math/rand/v2"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/gguf"
)

// Values show that weights were quantised to 4 bits before, whatever they are stored in now.
func TestMadeFrom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	values := func(levels func(float32) float32) []float32 {
		out := make([]float32, 64*256)
		for i := range out {
			out[i] = levels(float32(random.NormFloat64()))
		}
		return out
	}
	smooth := func(v float32) float32 { return v }
	sixteen := func(v float32) float32 { return 0.25 * float32(int(min(max(4*v, -8), 7))) }
	for name, c := range map[string]struct {
		matrices [][]float32
		want     string
	}{
		"never quantised": {[][]float32{values(smooth)}, ""},
		"4 bits":          {[][]float32{values(sixteen)}, gguf.FourBits},
		"in part":         {[][]float32{values(smooth), values(sixteen)}, gguf.FourBits},
		"zeros":           {[][]float32{make([]float32, 64*256)}, ""},
	} {
		var weights []gguf.Weights
		for i, m := range c.matrices {
			weights = append(weights, gguf.Weights{Name: string(rune('a' + i)), Shape: []uint64{256, 64}, Values: m})
		}
		f, err := read(written(t, entries, weights))
		check.Err(t, err)
		if got, err := f.MadeFrom(); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
