package compare

import (
	"fmt"
	"math"
	"slices"

	"llmparity/internal/record"
)

// reportedUnit says what is known of an engine's own names: the unit, and our figure that it belongs beside.
func reportedUnit(name string) (unit, beside string) {
	switch name {
	case "predicted_per_second", "decode_tokens_per_s":
		return "tokens/s", DecodeTPS
	case "prompt_per_second", "prefill_tokens_per_s":
		return "tokens/s", PrefillTPS
	case "time_to_first_token_s":
		return "s", TTFT
	case "e2e_latency_s":
		return "s", Latency
	case "time_per_output_token_s":
		return "s", ""
	case "total_duration":
		return "ns", Latency
	case "load_duration", "prompt_eval_duration", "eval_duration":
		return "ns", ""
	case "prompt_ms", "predicted_ms", "prompt_per_token_ms", "predicted_per_token_ms":
		return "ms", ""
	case "predicted_n", "completion_tokens", "eval_count":
		return "tokens", Tokens
	case "prompt_n", "prompt_tokens", "prompt_eval_count":
		return "tokens", Prompt
	case "cache_n", "cached_tokens":
		return "tokens", Cached
	case "total_tokens":
		return "tokens", ""
	}
	return "", ""
}

// reportedFigures are the engine's own, in the order of their names.
func reportedFigures(attempts []*record.Attempt) []Figure {
	names := map[string]bool{}
	for _, a := range attempts {
		for _, r := range a.Measured() {
			for name := range r.Reported {
				names[name] = true
			}
		}
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	out := make([]Figure, 0, len(sorted))
	for _, name := range sorted {
		unit, beside := reportedUnit(name)
		of := func(r *record.Request) float64 {
			v, ok := r.Reported[name]
			if !ok {
				return math.NaN()
			}
			return v
		}
		out = append(out, perRequest(attempts, of, Figure{Name: name, Title: "reported: " + name, Unit: unit, Reported: true, Beside: beside,
			How: fmt.Sprintf("%s as the engine reports it of itself, by its own clock and count; not measured by us", name)}))
	}
	return out
}
