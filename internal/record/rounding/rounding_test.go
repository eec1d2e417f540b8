package rounding_test

import (
	"slices"
	"testing"

	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

func TestOf(t *testing.T) {
	type policy = map[string]string
	type list = []rounding.Arithmetic
	gpu := &record.Device{Class: record.GPU}
	for _, c := range []struct {
		policy policy
		device *record.Device
		model  string
		want   list
	}{
		{policy{"activations_dtype": "f32", "kv_dtype": "f32"}, nil, "Q4_1", list{rounding.Single}},
		{policy{"activations_dtype": "f32", "kv_dtype": "f32"}, gpu, "F32", list{rounding.Sines}},
		{policy{"activations_dtype": "f16", "kv_dtype": "f16"}, nil, "F16",
			list{rounding.HalfCache, rounding.Half}},
		{policy{"weights_dtype": "F32", "kv_dtype": "f16"}, nil, "F32", list{rounding.HalfCache}},
		{policy{"weights_dtype": "Q4_K_M", "kv_dtype": "f32"}, nil, "", list{rounding.EightWide}},
		{policy{"weights_dtype": "Q4_1", "kv_dtype": "f32"}, nil, "", list{rounding.Eight}},
		{policy{"weights_dtype": "F32", "kv_dtype": "f32", "flash_attention": "on"}, nil, "",
			list{rounding.HalfAttention}},
		{policy{"weights_dtype": "F32", "kv_dtype": "q8_0"}, nil, "", list{rounding.EightCache}},
		{policy{"kv_dtype": "K f16, V f32"}, nil, "F32", list{rounding.HalfCache}},
		{policy{"weights_dtype": "unknown", "kv_dtype": "f32"}, nil, "F32", nil},
		{policy{"weights_dtype": "F32"}, nil, "F32", nil},
	} {
		got := rounding.Of(&record.EngineInfo{Policy: c.policy}, c.device, record.Model{DType: c.model})
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.policy, got, c.want)
		}
	}
	if got := rounding.Of(nil, nil, record.Model{}); got != nil {
		t.Errorf("nothing known: %v", got)
	}
}

// A coarser arithmetic beside a finer one explains what it explains alone.
func TestNatsOfTheCoarsest(t *testing.T) {
	both, half := []rounding.Arithmetic{rounding.Single, rounding.Half}, []rounding.Arithmetic{rounding.Half}
	if got := rounding.Nats(both); got != rounding.Nats(half) {
		t.Error(got)
	}
	last := 0.0
	for _, r := range rounding.Table() {
		if r.Nats < last {
			t.Errorf("%s explains less than what stands before it", r.Arithmetic)
		}
		last = r.Nats
	}
}
