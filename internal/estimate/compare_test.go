package estimate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/fault"
)

// older has the shape that profiles had before schema 2.0.
const older = `{"memory_breakdown":{"model_weights_gb":13.21,"kv_cache_gb":0.45,"activations_gb":0.89,"framework_overhead_gb":0.62,"total_gb":15.17},
 "model_info":{"model_name":"meta-llama/Llama-2-7b-hf","dtype":"torch.float16","num_parameters":6738415616,"batch_size":1},
 "gpu_info":{"num_gpus":2,"multi_gpu_overhead_gb":0.34}}`

const newer = `{"profiler_version":"2.0","schema_version":"2.0","model_info":{"name":"m"},"metadata":{"units":{"gb":"GiB (2^30 bytes)"}},
 "memory_measurements":{"memory_increase_gb":45.30},"engine_metadata":{"engine_type":"vllm"},
 "memory_breakdown":{"total_measured_gb":48.20,"model_weights_gb":29.80,"kv_cache_gb":9.20,"kv_cache_used_gb":2,"activations_gb":5.50,"framework_overhead_gb":-1.25,
 "confidence_levels":{"overall":"high","weights":"high"}}}`

func verdicts(r Comparison) map[string]string {
	m := map[string]string{}
	for _, c := range r.Components {
		m[c.Name] = c.Verdict
	}
	return m
}

func TestCompareOlderProfile(t *testing.T) {
	p, err := ParseProfile("profile.json", []byte(older))
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	r := Calculated{13.5, 0.4, 0.9, 0.6, nan}.Against(p)
	want := map[string]string{Weights: Outside, KVReserved: Within, Activation: Within, Framework: Within,
		MultiGPU: NotCalculated, Total: Within}
	if got := verdicts(r); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v is right", got, want)
	}
	weights := r.Components[0]
	if math.Abs(*weights.Difference-0.29) > 1e-9 || math.Abs(*weights.Percent-100*0.29/13.21) > 1e-9 {
		t.Errorf("%v %v", *weights.Difference, *weights.Percent)
	}
	if !strings.Contains(strings.Join(r.Recommendations, "\n"), "model weights: calculated 2.2 % too high") {
		t.Errorf("%q", r.Recommendations)
	}
}

func TestCompareNewerProfile(t *testing.T) {
	p, err := ParseProfile("profile.json", []byte(newer))
	if err != nil {
		t.Fatal(err)
	}
	if p.Model != "m" || p.Engine != "vllm" || p.Unit == "" || p.Total != 48.2 || p.KVUsed != 2 {
		t.Errorf("%+v", p)
	}
	nan := math.NaN()
	r := Calculated{29.80 * 1.07374, 9.2, 5.5, 1, nan}.Against(p)
	got := verdicts(r)
	if got[Weights] != Outside || got[KVReserved] != Within || got[Framework] != Outside {
		t.Errorf("%v", got)
	}
	all := strings.Join(r.Recommendations, "\n")
	for _, says := range []string{"--calc-unit GB", "negative", "of the KV cache 2 of 9.2 was used"} {
		if !strings.Contains(all, says) {
			t.Errorf("%q isn't said: %s", says, all)
		}
	}
}

// The borders of what is expected: exactly at the variance is within.
func TestVariances(t *testing.T) {
	nan := math.NaN()
	for name, variance := range map[string]float64{Weights: 2, KVReserved: 15, Activation: 30, Framework: 40} {
		for factor, want := range map[float64]string{1 + variance/100: Within, 1 - variance/100: Within,
			1 + variance/100 + 0.001: Outside, 1 - variance/100 - 0.001: Outside} {
			p := Profile{Weights: 10, KV: 10, Activation: 10, Overhead: 10, Total: 40, KVUsed: nan, MultiGPU: nan}
			c := Calculated{10, 10, 10, 10, nan}
			*map[string]*float64{Weights: &c.Weights, KVReserved: &c.KV, Activation: &c.Activation,
				Framework: &c.Overhead}[name] *= factor
			if got := verdicts(c.Against(p))[name]; got != want {
				t.Errorf("%s × %g is %s", name, factor, got)
			}
		}
	}
}

func TestNothingMeasured(t *testing.T) {
	p, err := ParseProfile("profile.json", []byte(`{"memory_breakdown":{"model_weights_gb":1,"confidence_levels":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	r := Calculated{1, 2, nan, nan, nan}.Against(p)
	if got := verdicts(r); got[Weights] != Within || got[KVReserved] != NotMeasured || got[Total] != NotMeasured ||
		got[Activation] != NotMeasured {
		t.Errorf("%v", got)
	}
}

// What a profile has from a file's size or a formula is no measurement that a calculation could be held against.
func TestArithmeticProvesNoCalculation(t *testing.T) {
	p, err := ParseProfile("profile.json",
		[]byte(`{"memory_breakdown":{"model_weights_gb":1,"kv_cache_gb":2,"activations_gb":3,"total_gb":8,
		"methods":{"weights":"tensors","kv_cache":"formula","activations":"engine_log"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r := Calculated{1, 2, 3, 2, math.NaN()}.Against(p)
	got := verdicts(r)
	if got[Weights] != NotMeasured || got[KVReserved] != NotMeasured || got[Activation] != Within ||
		got[Total] != Within {
		t.Errorf("%v", got)
	}
	if all := strings.Join(r.Recommendations, "\n"); !strings.Contains(all, "weights: file size in the profile") ||
		!strings.Contains(all, "KV cache: calculated in the profile") {
		t.Errorf("%s", all)
	}
}

func TestBadProfiles(t *testing.T) {
	dir := t.TempDir()
	for says, text := range map[string]string{
		"not a JSON object": "[]", "behind its end": older + "{}", "memory_breakdown is missing": "{}",
		"memory_breakdown is no object":          `{"memory_breakdown":3}`,
		"memory_breakdown.model_weights_gb is x": `{"memory_breakdown":{"model_weights_gb":"x"}}`,
		"memory_breakdown.kv_cache_gb is -1":     `{"memory_breakdown":{"kv_cache_gb":-1}}`,
		"schema_version 9.0 is not known":        `{"schema_version":"9.0","memory_breakdown":{"total_gb":1}}`,
		"is 1e+300":                              `{"memory_breakdown":{"total_gb":1e300}}`,
		"methods is no object":                   `{"memory_breakdown":{"total_gb":1,"methods":1}}`,
	} {
		path := filepath.Join(dir, "profile.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenProfile(path)
		if fault.Of(err) != fault.BadRecord || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", says, err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "none.json")} {
		if _, err := OpenProfile(path); fault.Of(err) != fault.BadRecord {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func FuzzProfile(f *testing.F) {
	f.Add([]byte(older))
	f.Add([]byte(newer))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseProfile("profile.json", text)
		if err != nil {
			if fault.Of(err) != fault.BadRecord {
				t.Fatalf("%v has class %s", err, fault.Of(err))
			}
			return
		}
		r := Calculated{13.5, 0.4, 0.9, 0.6, math.NaN()}.Against(p)
		if len(r.Components) < 5 || len(r.Recommendations) == 0 {
			t.Fatalf("%+v", r)
		}
	})
}

// A sum that lacks a part is not held against the whole, were it near it by chance.
func TestSumThatLacksAPart(t *testing.T) {
	nan := math.NaN()
	p := Profile{Weights: 10, KV: 1, Activation: 0.1, Overhead: 0.1, Total: 11.2, KVUsed: nan, MultiGPU: nan}
	r := Calculated{Weights: 11.2, KV: nan, Activation: nan, Overhead: 0.1, MultiGPU: nan}.Against(p)
	last := r.Components[len(r.Components)-1]
	if last.Name != Total || last.Verdict != NotCalculated || last.Calculated != nil ||
		!strings.Contains(last.Why, "lacks the KV cache, activations") {
		t.Errorf("%+v", last)
	}
}
