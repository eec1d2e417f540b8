package calculator

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/predict/estimate"
)

// older has the shape of profiles before schema 2.0.
const older = `{"memory_breakdown":{"model_weights_gb":13.21,"kv_cache_gb":0.45,"activations_gb":0.89,"framework_overhead_gb":0.62,"total_gb":15.17},
 "model_info":{"model_name":"meta-llama/Llama-2-7b-hf","dtype":"torch.float16","num_parameters":6738415616,"batch_size":1},
 "gpu_info":{"num_gpus":2,"multi_gpu_overhead_gb":0.34}}`

const newer = `{"profiler_version":"2.0","schema_version":"2.0","model_info":{"name":"m"},"metadata":{"units":{"gb":"GiB (2^30 bytes)"}},
 "memory_measurements":{"memory_increase_gb":45.30},"engine_metadata":{"engine_type":"vllm"},
 "memory_breakdown":{"total_measured_gb":48.20,"model_weights_gb":29.80,"kv_cache_gb":9.20,"kv_cache_used_gb":2,"activations_gb":5.50,"framework_overhead_gb":-1.25,
 "confidence_levels":{"overall":"high","weights":"high"}}}`

var nan = math.NaN()

func TestAgainstProfiles(t *testing.T) {
	for name, c := range map[string]struct {
		profile string
		calc    Calculated
		want    map[string]string
		says    []string
	}{
		"older schema": {older, Calculated{13.5, 0.4, 0.9, 0.6, nan}, map[string]string{
			estimate.Weights: Outside, estimate.KVReserved: Within, estimate.Activation: Within,
			estimate.Framework: Within, estimate.MultiGPU: NotCalculated, estimate.Total: Within},
			[]string{"Model weights: calculated 2.2% too high"}},
		"newer schema, GB for GiB": {newer, Calculated{29.80 * 1.07374, 9.2, 5.5, 1, nan}, map[string]string{
			estimate.Weights: Outside, estimate.KVReserved: Within, estimate.Activation: Within,
			estimate.Framework: Outside, estimate.Total: Within},
			[]string{"--calc-unit GB", "negative", "KV cache: 2 of 9.2 GiB was in use"}},
		"missing measurements": {`{"memory_breakdown":{"model_weights_gb":1}}`, Calculated{1, 2, nan, nan, nan},
			map[string]string{estimate.Weights: Within, estimate.KVReserved: NotMeasured,
				estimate.Activation: NotMeasured, estimate.Framework: NotMeasured, estimate.Total: NotMeasured},
			[]string{"KV cache: not measured"}},
		"file sizes and formulas are not measurements": {`{"memory_breakdown":{"model_weights_gb":1,"kv_cache_gb":2,
			"activations_gb":3,"framework_overhead_gb":2,"total_gb":8,
			"methods":{"weights":"tensors","kv_cache":"formula","activations":"engine_log"}}}`,
			Calculated{1, 2, 3, 2, nan}, map[string]string{estimate.Weights: NotMeasured,
				estimate.KVReserved: NotMeasured, estimate.Activation: Within, estimate.Framework: Within,
				estimate.Total: Within},
			[]string{"weights: file size in the profile", "KV cache: calculated in the profile"}},
		"no total from some parts": {older, Calculated{13.21, nan, nan, 0.62, nan}, map[string]string{
			estimate.Weights: Within, estimate.KVReserved: NotCalculated, estimate.Activation: NotCalculated,
			estimate.Framework: Within, estimate.MultiGPU: NotCalculated, estimate.Total: NotCalculated},
			[]string{"Total: the calculation lacks KV cache, activations"}},
	} {
		p, err := ParseProfile("profile.json", []byte(c.profile))
		check.Err(t, err)
		r := c.calc.Against(p)
		got := map[string]string{}
		for _, x := range r.Components {
			got[x.Name] = x.Verdict
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		all := strings.Join(r.Recommendations, "\n")
		for _, says := range c.says {
			if !strings.Contains(all, says) {
				t.Errorf("%s: %q is missing in %s", name, says, all)
			}
		}
		if w := r.Components[0]; name == "older schema" && (math.Abs(*w.Difference-0.29) > 1e-9 ||
			math.Abs(*w.Percent-100*0.29/13.21) > 1e-9) {
			t.Errorf("%v %v", *w.Difference, *w.Percent)
		}
	}
}

func TestParseProfile(t *testing.T) {
	p, err := ParseProfile("profile.json", []byte(newer))
	if err != nil || p.Model != "m" || p.Engine != "vllm" || p.Unit == "" || p.Total != 48.2 || p.KVUsed != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A difference that equals the usual variance is within it.
func TestVarianceIsInclusive(t *testing.T) {
	for part, variance := range []float64{2, 15, 30, 40} {
		for factor, want := range map[float64]string{1 + variance/100: Within, 1 - variance/100: Within,
			1 + variance/100 + 0.001: Outside, 1 - variance/100 - 0.001: Outside} {
			p := Profile{Weights: 10, KV: 10, Activation: 10, Overhead: 10, Total: 40, KVUsed: nan, MultiGPU: nan}
			c := Calculated{10, 10, 10, 10, nan}
			c[part] *= factor
			if got := c.Against(p).Components[part]; got.Verdict != want {
				t.Errorf("%s × %g is %s", got.Name, factor, got.Verdict)
			}
		}
	}
}

func TestOpenProfileRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "profile.json")
	for says, text := range map[string]string{
		"not a JSON object": "[]", "text after the end": older + "{}", "memory_breakdown is missing": "{}",
		"memory_breakdown is not an object":      `{"memory_breakdown":3}`,
		"memory_breakdown.model_weights_gb is x": `{"memory_breakdown":{"model_weights_gb":"x"}}`,
		"memory_breakdown.kv_cache_gb is -1":     `{"memory_breakdown":{"kv_cache_gb":-1}}`,
		"schema_version 9.0 is unknown":          `{"schema_version":"9.0","memory_breakdown":{"total_gb":1}}`,
		"is 1e+300":                              `{"memory_breakdown":{"total_gb":1e300}}`,
		"methods is not an object":               `{"memory_breakdown":{"total_gb":1,"methods":1}}`,
	} {
		check.Err(t, os.WriteFile(path, []byte(text), 0o600))
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
