package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// own is what is known of an engine's own name for a figure.
type own struct{ unit, beside string } // beside: our figure that it belongs next to

// reportedUnit says what is known of a name: of those that engines and servers use all, of others what their ends tell.
func reportedUnit(name string) (unit, beside string) {
	if o, known := ownNames()[name]; known {
		return o.unit, o.beside
	}
	for _, end := range []struct{ suffix, unit string }{
		{"_tokens_per_second", "tokens/s"}, {"_tokens_per_s", "tokens/s"}, {"_ms", "ms"}, {"_us", "µs"}, {"_ns", "ns"},
		{"_s",
			"s"},
		{"_bytes", "bytes"}, {"_tokens", "tokens"},
	} {
		if strings.HasSuffix("_"+name, end.suffix) && !strings.HasSuffix(name, "_per"+end.suffix) {
			return end.unit, ""
		}
	}
	return "", ""
}

func ownNames() map[string]own {
	return map[string]own{
		// WebLLM
		"decode_tokens_per_s": {"tokens/s", figure.DecodeTPS}, "prefill_tokens_per_s": {"tokens/s", figure.PrefillTPS},
		"time_to_first_token_s": {
			"s",
			figure.TTFT,
		}, "e2e_latency_s": {"s", figure.Latency}, "time_per_output_token_s": {"s", ""},
		// llama-server
		"predicted_per_second": {"tokens/s", figure.DecodeTPS}, "prompt_per_second": {"tokens/s", figure.PrefillTPS},
		"predicted_n": {"tokens", figure.Tokens},
		"prompt_n":    {"tokens", figure.Prompt}, "tokens_predicted": {"tokens", figure.Tokens},
		"tokens_evaluated": {"tokens", figure.Prompt},
		"cache_n":          {"tokens", figure.Cached},
		// llama-completion
		"eval_tokens_per_second": {
			"tokens/s",
			figure.DecodeTPS,
		}, "prompt_eval_tokens_per_second": {"tokens/s", figure.PrefillTPS},
		"prompt_eval_tokens": {
			"tokens",
			figure.Prompt,
		}, "load_ms": {"ms", figure.LoadTime}, "total_ms": {"ms", figure.Latency},
		// Ollama
		"total_duration": {"ns", figure.Latency}, "load_duration": {"ns", ""}, "prompt_eval_duration": {"ns", ""},
		"eval_duration":     {"ns", ""},
		"prompt_eval_count": {"tokens", figure.Prompt}, "eval_count": {"tokens", figure.Tokens},
		// OpenAI's usage, and the protocol's
		"prompt_tokens": {
			"tokens",
			figure.Prompt,
		}, "completion_tokens": {"tokens", figure.Tokens}, "generated": {"tokens", figure.Tokens},
		"cached_tokens": {"tokens", figure.Cached},
	}
}

// reportedFigures are the engine's own, in the order of their names.
func reportedFigures(attempts []*record.Attempt) []evidence.Figure {
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
	out := make([]evidence.Figure, 0, len(sorted))
	for _, name := range sorted {
		unit, beside := reportedUnit(name)
		of := func(r *record.Request) float64 {
			v, ok := r.Reported[name]
			if !ok {
				return math.NaN()
			}
			return v
		}
		out = append(out, evidence.PerRequest(attempts, of,
			evidence.Figure{Name: name, Title: "reported: " + name, Unit: unit, Reported: true,
				Beside: beside,
				How: fmt.Sprintf(
					"%s as the engine reports it of itself, by its own clock and count; not measured by us",
					name,
				)}))
	}
	return out
}
