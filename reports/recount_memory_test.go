//go:build !race

package reports_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// insides are engines of which there is everything to say about memory: what is inside, peaks of phases, what was
// foretold.
func insides(launches int) []comparetest.Engine {
	a, b := comparetest.Measured(comparetest.Browser(launches), comparetest.Page()),
		comparetest.Measured(comparetest.Native(launches), nil)
	a.Vary, b.Vary, a.Device = 0.04, 0.04, b.Device
	a = comparetest.Mapped(a)
	part := comparetest.Foretell
	a.Prediction = &record.Prediction{Source: "webllm-package", Setup: map[string]string{"context": "256"},
		Parts: []record.Foretold{part(figure.ModelWeights, 4.004, 4.004, 4.004, "f32"),
			part(figure.KVCache, 0.27, 0.27, 0.27, "f16"),
			part(figure.KVCacheUsed, 0.06, 0.06, 0.07, "f32"), part(figure.Activations, 0.5, 0.9, 1.6, "f32"),
			part(figure.FrameworkOverhead, 40, 80, 110, ""),
			part(figure.MemoryIncrease, 60, 90, 130, ""), part(figure.TotalMemory, 60, 85, 120, "")}}
	place := func(name string, need, high, free int64) record.Place {
		return record.Place{Name: name, Need: need << 20, High: high << 20, Free: free << 20, Level: record.RiskLow,
			How: "told"}
	}
	a.Risk = &record.Risk{Level: record.RiskMedium,
		Places:  []record.Place{place("ram", 460, 500, 520), place("renderer", 80, 110, 4096)},
		Reasons: []string{"tight"}}
	a.Risk.Places[0].Level = record.RiskMedium
	b.Prediction = &record.Prediction{Source: "gguf",
		Parts: []record.Foretold{part(figure.ModelWeights, 4, 4, 4, "f32"),
			part(figure.MemoryIncrease, 10, 100, 200, "")}}
	return []comparetest.Engine{a, b}
}

func TestMemoryIsThatOfTheRecord(t *testing.T) {
	for name, engines := range map[string]func() []comparetest.Engine{
		"inside and foretold": func() []comparetest.Engine { return insides(6) },
		"failed, cut and warm-up launches": func() []comparetest.Engine {
			all := insides(7)
			all[0].Warmup, all[0].Failing, all[0].Cut = true, map[int]record.Class{3: record.DeviceLost}, 5
			return all
		},
		"launches that are used again": func() []comparetest.Engine {
			all := insides(6)
			for i := range all {
				all[i].Reused, all[i].Cell.Reused = true, true
			}
			return all[1:]
		},
		"cached prompts": func() []comparetest.Engine {
			all := insides(6)
			all[1].Cell.PromptCache = record.CacheOn
			all[1].Usage = func(u *record.Usage) { u.CachedTokens = 3 }
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", engines()...))
		})
	}
}

// A page that was closed in one launch leaves readings out; so does one that was replaced, which another's stand in
// for.
func TestMemoryOfReadingsThatAreMissing(t *testing.T) {
	for _, edge := range []string{"load", "measure", "unload"} {
		dir := comparetest.Write(t, t.TempDir(), "folder", insides(6)...)
		path := filepath.Join(dir, "metrics.csv")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		left := 0
		for line := range strings.Lines(string(text)) {
			if left < 3 && strings.HasSuffix(strings.TrimSpace(line), ","+edge) &&
				(strings.Contains(line, ",live_bytes,") || strings.Contains(line, ",used_bytes,")) {
				left++
				continue
			}
			kept = append(kept, line)
		}
		if left != 3 {
			t.Fatalf("%d rows of %s to leave out", left, edge)
		}
		if err := os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		reportAgain(t, dir)
	}
}

func TestWrongMemoryIsFound(t *testing.T) {
	folder := workedOut(t, comparetest.Write(t, t.TempDir(), "folder", insides(6)...), compare.Defaults())
	forecast := func(r *compare.Result, name string) *compare.Foretold {
		for i, p := range r.Cells[0].Forecast.Parts {
			if p.Name == name && p.Error != nil {
				return &r.Cells[0].Forecast.Parts[i]
			}
		}
		t.Fatalf("nothing was foretold of %s", name)
		return nil
	}
	component := func(r *compare.Result, name string) *compare.Component {
		for _, list := range [][]compare.Component{r.Cells[0].Parts.Components, r.Cells[0].Parts.Beyond} {
			for i, p := range list {
				if p.Name == name {
					return &list[i]
				}
			}
		}
		t.Fatalf("there is no component %s", name)
		return nil
	}
	fig := func(list []compare.Figure, name string) *compare.Figure {
		for i, f := range list {
			if f.Name == name && f.Known() {
				return &list[i]
			}
		}
		t.Fatalf("there is no %s", name)
		return nil
	}
	more := func(v *float64) { *v *= 1.001 }
	risk := func(r *compare.Result) *record.Risk { // the record keeps its own
		of := *r.Cells[0].Risk
		of.Places = slices.Clone(of.Places)
		r.Cells[0].Risk = &of
		return &of
	}
	for what, change := range map[string]func(*compare.Result){
		"component framework_overhead, median": func(
			r *compare.Result) {
			more(component(r, figure.FrameworkOverhead).Median)
		},
		"component model_weights, launch": func(
			r *compare.Result) {
			more(&component(r, figure.ModelWeights).Values[2].Value)
		},
		"component activations, lower end": func(
			r *compare.Result) {
			more(&component(r, figure.Activations).Interval.Lo)
		},
		"gpu_process, median": func(
			r *compare.Result) {
			more(component(r, figure.GPUProcess).Median)
		},
		"everything_else, launch": func(
			r *compare.Result) {
			component(r, figure.EverythingElse).Values[1].Value++
		},
		"not_yet_there, method": func(
			r *compare.Result) {
			component(r, figure.NotYetThere).Method = figure.Ledger
		},
		"page_heaps, confidence": func(
			r *compare.Result) {
			component(r, figure.PageHeaps).Confidence = "high"
		},
		"the report has no browser_share": func(
			r *compare.Result) {
			r.Cells[0].Parts.Beyond = r.Cells[0].Parts.Beyond[1:]
		},
		"no kv_cache": func(
			r *compare.Result) {
			component(r, figure.KVCache).Name = "cache"
		},
		"webgpu_ledger at load, median": func(
			r *compare.Result) {
			more(fig(r.Cells[0].Memory.Load, figure.Ledger).Median)
		},
		"js_heap at retained, upper end": func(
			r *compare.Result) {
			more(&fig(r.Cells[0].Memory.Retained, figure.JSHeap).Interval.Hi)
		},
		"total_pss at measure, launch": func(
			r *compare.Result) {
			more(&fig(r.Cells[0].Memory.Measure, figure.TotalPSS).Values[0].Value)
		},
		"is of launch": func(
			r *compare.Result) {
			fig(r.Cells[0].Memory.Measure, figure.Wasm).Values[1].Attempt++
		},
		"highest RSS of gpu-process in load": func(
			r *compare.Result) {
			more(fig(r.Cells[0].Memory.Peaks[2].Phases, "load").Median)
		},
		"report has no highest RSS of browser": func(
			r *compare.Result) {
			r.Cells[0].Memory.Peaks = r.Cells[0].Memory.Peaks[1:]
		},
		"retained_pss, median": func(
			r *compare.Result) {
			more(fig(r.Cells[0].Figures, figure.Retained).Median)
		},
		"cached_prompt_tokens, median": func(
			r *compare.Result) {
			*fig(r.Cells[1].Figures, figure.Cached).Median = 1
		},
		"sampler_busy, median": func(
			r *compare.Result) {
			more(fig(r.Cells[0].Sampler, figure.SamplerBusy).Median)
		},
		"has no sampler_read": func(
			r *compare.Result) {
			fig(r.Cells[1].Sampler, figure.SamplerUS).Name = "read"
		},
		"forecast of increase, error in percent": func(
			r *compare.Result) {
			more(forecast(r, figure.MemoryIncrease).Percent)
		},
		"forecast of increase, measured": func(
			r *compare.Result) {
			more(forecast(r, figure.MemoryIncrease).Measured)
		},
		"forecast of activations: in range": func(
			r *compare.Result) {
			f := forecast(r, figure.Activations).Within
			*f = !*f
		},
		"forecast of kv_cache: in range": func(
			r *compare.Result) {
			forecast(r, figure.KVCache).Verdict = compare.WithinRange
		},
		"has no forecast of framework_overhead": func(
			r *compare.Result) {
			forecast(r, figure.FrameworkOverhead).Name = figure.ModelWeights
		},
		"forecast of model_weights: as expected": func(
			r *compare.Result) {
			f := forecast(r, figure.ModelWeights).AsExpected
			*f = !*f
		},
		"the report has no forecast":   func(r *compare.Result) { r.Cells[1].Forecast = nil },
		"the report has no components": func(r *compare.Result) { r.Cells[1].Parts = nil },
		"the report has no peaks":      func(r *compare.Result) { r.Cells[1].Memory = nil },
		"forecast of increase, measured, upper end": func(
			r *compare.Result) {
			more(&forecast(r, figure.MemoryIncrease).Interval.Hi)
		},
		"forecast of activations, what is general": func(
			r *compare.Result) {
			more(&forecast(r, figure.Activations).Expected.Variance)
		},
		"recommendations is": func(
			r *compare.Result) {
			r.Cells[0].Forecast.Recommendations = nil
		},
		"recommendation \"": func(r *compare.Result) {
			said := r.Cells[0].Forecast.Recommendations
			said[0] = strings.Replace(said[0], "MiB", "kB", 1)
		},
		"the cause is": func(r *compare.Result) {
			said := r.Cells[0].Forecast.Recommendations
			said[len(said)-1] += "; most of it comes from one (+1.0 MiB)"
		},
		"the risk of ram is low": func(
			r *compare.Result) {
			risk(r).Places[0].Level = record.RiskLow
		},
		"the risk of renderer is high": func(
			r *compare.Result) {
			risk(r).Places[1].Level = record.RiskHigh
		},
		"the level of risk is low": func(
			r *compare.Result) {
			risk(r).Level = record.RiskLow
		},
		"the level of risk is medium in the report, and high": func(
			r *compare.Result) {
			risk(r).Places[0].Free = 470 << 20
		},
		"stands behind": func(
			r *compare.Result) {
			slices.Reverse(risk(r).Places)
		},
		"it is refused":                       func(r *compare.Result) { risk(r).Refused = true },
		"risk of ram, needed is":              func(r *compare.Result) { risk(r).Places[0].Need += 2 },
		"risk of renderer, needed at most is": func(r *compare.Result) { risk(r).Places[1].High += 2 },
		"risk of renderer, free is":           func(r *compare.Result) { risk(r).Places[1].Free -= 64 },
		"the risk is":                         func(r *compare.Result) { risk(r).Places[0].Free++ },
		"the risk is  in":                     func(r *compare.Result) { r.Cells[0].Risk = nil },
		"forecast of kv_cache is": func(
			r *compare.Result) {
			more(forecast(r, figure.KVCache).High)
		},
	} {
		folder.finds(t, what, change, false)
	}
}
