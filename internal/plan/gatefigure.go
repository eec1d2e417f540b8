package plan

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/nearest"
)

// Better says which way a figure is better.
type Better int

// Of a figure that is neither there is no worse, so that it is held against limits alone and against no baseline.
const (
	Neither Better = iota
	Lower
	Higher
)

// GateFigure is a figure that a gate can judge, by both of its names.
type GateFigure struct {
	Name   string // in results
	Column string // in summary.csv; it says the unit
	Better Better
}

// GateFigures lists them in the order of summary.csv.
func GateFigures() []GateFigure {
	out := []GateFigure{
		{"peak_pss", "peak_pss_mb", Lower}, {"memory_increase", "memory_increase_mb", Lower},
		{"baseline_pss", "baseline_pss_mb", Lower},
		{"post_warmup_pss", "post_warmup_pss_mb", Lower}, {"retained_pss", "retained_pss_mb", Lower},
		{"peak_uss", "peak_uss_mb", Lower},
		{"peak_rss_sum", "peak_rss_sum_mb", Lower}, {"baseline_rss_sum", "baseline_rss_sum_mb", Lower},
		{"post_warmup_rss_sum", "post_warmup_rss_sum_mb", Lower},
		{"memory_increase_rss_sum", "memory_increase_rss_sum_mb", Lower},
		{"load_time", "load_time_ms", Lower}, {"ttft", "ttft_ms", Lower},
		{"inter_token_latency_p50", "itl_p50_ms", Lower},
		{"inter_token_latency_p99", "itl_p99_ms", Lower}, {"latency", "latency_ms", Lower},
		{"prefill_tps", "prefill_tokens_per_s", Higher},
		{"decode_tps", "decode_tokens_per_s", Higher}, {"tokens", "tokens_generated", Neither},
		{"prompt_tokens", "prompt_tokens", Neither},
		{"cached_prompt_tokens", "cached_prompt_tokens", Neither},
		{"model_weights", "model_weights_mb", Lower}, {"kv_cache", "kv_cache_mb", Lower},
		{"kv_cache_used", "kv_cache_used_mb", Lower},
		{"activations", "activations_mb", Lower}, {"framework_overhead", "framework_overhead_mb", Lower},
		{"multi_gpu_overhead", "multi_gpu_overhead_mb", Lower},
		{"sampler_busy", "sampler_busy_percent", Lower}, {"sampler_read", "sampler_read_us", Lower},
		{"sampler_cpu", "sampler_cpu_percent", Lower},
		{"aggregate_tps", "aggregate_tps", Higher}, {"requests_per_s", "requests_per_s", Higher},
		{"goodput", "goodput", Higher},
		{"goodput_share", "goodput_share_percent", Higher},
	}
	for _, of := range [][2]string{{"ttft", "ttft"}, {"queueing", "queueing"}, {"itl", "all_itl"}, {"tpot", "tpot"},
		{"e2e", "e2e"}} {
		for _, share := range []string{"p50", "p90", "p95", "p99"} { // of a launch's requests, where there are several
			out = append(out, GateFigure{of[0] + "_" + share, of[1] + "_" + share + "_ms", Lower})
		}
	}
	return out
}

// GateFigureOf finds a figure by either name; the error offers the nearest.
func GateFigureOf(name string) (GateFigure, error) {
	all := GateFigures()
	at := slices.IndexFunc(all, func(f GateFigure) bool { return f.Name == name || f.Column == name })
	if at >= 0 {
		return all[at], nil
	}
	return GateFigure{}, fmt.Errorf("there is no figure %q; the nearest are %s", name,
		strings.Join(nearest.Of(name, gateFigureNames(), 3), ", "))
}

// gateFigureNames lists both names of all figures.
func gateFigureNames() []string {
	var names []string
	for _, f := range GateFigures() {
		names = append(names, f.Column)
		if f.Name != f.Column {
			names = append(names, f.Name)
		}
	}
	return names
}
