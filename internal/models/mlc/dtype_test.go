package mlc

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"llmparity/internal/kit/check"
)

// valueOf returns the value of a half by definition.
func valueOf(h uint16) float64 {
	sign, exponent, fraction := 1-2*float64(h>>15), int(h>>10&31), float64(h&1023)
	if exponent == 0 {
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// Values round to the nearest half, and the middle of two to the even one.
func TestHalfRounds(t *testing.T) {
	want := func(v float32, h uint16) {
		t.Helper()
		for _, sign := range []uint16{0, 0x8000} {
			if got, ok := half(float32(math.Copysign(float64(v), 1-2*float64(sign>>15)))); !ok || got != h|sign {
				t.Fatalf("%g becomes %#04x %v, want %#04x", v, got, ok, h|sign)
			}
		}
	}
	for h := range uint16(0x7c00) {
		v := valueOf(h)
		want(float32(v), h)
		next := 65536.0 // beyond the last one
		if h < 0x7bff {
			next = valueOf(h + 1)
		}
		middle := float32((v + next) / 2) // exact: it has one bit more
		below, above := math.Nextafter32(middle, 0), math.Nextafter32(middle, 1<<20)
		want(below, h)
		if h == 0x7bff {
			for _, v := range []float32{middle, -middle, above, 1e30, float32(math.Inf(1)), float32(math.Inf(-1))} {
				if got, ok := half(v); ok {
					t.Errorf("%g becomes %#04x, want an overflow", v, got)
				}
			}
			continue
		}
		want(middle, h+h&1)
		want(above, h+1)
	}
	if h, ok := half(float32(math.NaN())); !ok || h&0x7c00 != 0x7c00 || h&0x3ff == 0 {
		t.Errorf("not a number becomes %#04x %v", h, ok)
	}
}

func TestFloat16Package(t *testing.T) {
	f, p := tinyPackage(t, Options{DType: Float16})
	var c cache
	readJSON(t, p.Dir, "tensor-cache.json", &c)
	var conf struct {
		Quantization string
		ModelConfig  struct{ DType string } `json:"model_config"`
	}
	readJSON(t, p.Dir, configName, &conf)
	if conf.Quantization != "q0f16" || conf.ModelConfig.DType != Float16 || p.Shape.DType != Float16 ||
		c.Metadata.BitsPerParam != 16 ||
		c.Metadata.ParamBytes != 2*c.Metadata.ParamSize ||
		c.Metadata.ParamBytes != sizeOf(t, p.Dir, "params_shard_0.bin") {
		t.Errorf("%+v %+v %+v", conf, c.Metadata, p)
	}
	data := check.Read(t, filepath.Join(p.Dir, "params_shard_0.bin"))
	for _, r := range c.Records[0].Tensors {
		if r.DType != Float16 {
			t.Errorf("%s is %s", r.Name, r.DType)
		}
		if r.Name != "lm_head.weight" {
			continue
		}
		for i, v := range tensor(t, f, "output.weight") {
			got := valueOf(binary.LittleEndian.Uint16(data[r.Offset+2*int64(i):]))
			if math.Abs(got-float64(v)) > math.Max(math.Abs(float64(v))/2048, math.Ldexp(1, -25)) {
				t.Fatalf("value %d is %g, want %g", i, got, v)
			}
		}
	}
}
