package rounding_test

import (
	"slices"
	"testing"

	"llmparity/internal/record"
	"llmparity/internal/rounding"
)

func TestOf(t *testing.T) {
	gpu := &record.Device{Class: record.GPU}
	for _, c := range []struct {
		policy map[string]string
		device *record.Device
		model  string
		want   []rounding.Arithmetic
	}{
		{map[string]string{"activations_dtype": "f32", "kv_dtype": "f32"}, nil, "Q4_1", []rounding.Arithmetic{rounding.Single}},
		{map[string]string{"activations_dtype": "f32", "kv_dtype": "f32"}, gpu, "F32", []rounding.Arithmetic{rounding.GPU}},
		{map[string]string{"activations_dtype": "f16", "kv_dtype": "f16"}, nil, "F16",
			[]rounding.Arithmetic{rounding.HalfCache, rounding.Half}},
		{map[string]string{"weights_dtype": "F32", "kv_dtype": "f16"}, nil, "F32", []rounding.Arithmetic{rounding.HalfCache}},
		{map[string]string{"weights_dtype": "Q4_K_M", "kv_dtype": "f32"}, nil, "", []rounding.Arithmetic{rounding.Eight}},
		{map[string]string{"weights_dtype": "F32", "kv_dtype": "q8_0"}, nil, "", []rounding.Arithmetic{rounding.SmallCache}},
		{map[string]string{"kv_dtype": "K f16, V f32"}, nil, "F32", []rounding.Arithmetic{rounding.HalfCache}},
		{map[string]string{"weights_dtype": "unknown", "kv_dtype": "f32"}, nil, "F32", nil},
		{map[string]string{"weights_dtype": "F32"}, nil, "F32", nil},
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
	if got := rounding.Nats([]rounding.Arithmetic{rounding.Single, rounding.Half}); got != rounding.Nats([]rounding.Arithmetic{rounding.Half}) {
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
