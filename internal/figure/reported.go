package figure

import "strings"

// beside has the names that engines give to one of these figures when they report it of themselves.
var beside = map[string]string{
	"decode_tokens_per_s": DecodeTPS, "predicted_per_second": DecodeTPS, "eval_tokens_per_second": DecodeTPS,
	"prefill_tokens_per_s": PrefillTPS, "prompt_per_second": PrefillTPS, "prompt_eval_tokens_per_second": PrefillTPS,
	"time_to_first_token_s": TTFT, "load_ms": LoadTime,
	"e2e_latency_s": Latency, "total_ms": Latency, "total_duration": Latency,
	"predicted_n": Tokens, "tokens_predicted": Tokens, "eval_count": Tokens, "completion_tokens": Tokens,
	"generated": Tokens,
	"prompt_n":  Prompt, "tokens_evaluated": Prompt, "prompt_eval_tokens": Prompt, "prompt_eval_count": Prompt,
	"prompt_tokens": Prompt,
	"cache_n":       Cached, "cached_tokens": Cached,
}

// units has the units of names that do not end in a unit.
var units = map[string]string{
	"predicted_per_second": "tokens/s", "prompt_per_second": "tokens/s",
	"predicted_n": "tokens", "tokens_predicted": "tokens", "eval_count": "tokens", "generated": "tokens",
	"prompt_n": "tokens", "tokens_evaluated": "tokens", "prompt_eval_count": "tokens", "cache_n": "tokens",
	"total_duration": "ns", "load_duration": "ns", "prompt_eval_duration": "ns", "eval_duration": "ns",
}

// Reported is what is known of a figure that an engine reports of itself, by the engine's name for it: its unit, and
// the figure of ours that it belongs beside.
func Reported(name string) (unit, of string) {
	if unit = units[name]; unit != "" {
		return unit, beside[name]
	}
	for _, end := range []struct{ suffix, unit string }{
		{"_tokens_per_second", "tokens/s"}, {"_tokens_per_s", "tokens/s"}, {"_ms", "ms"}, {"_us", "µs"}, {"_ns", "ns"},
		{"_s", "s"}, {"_bytes", "bytes"}, {"_tokens", "tokens"},
	} {
		if strings.HasSuffix("_"+name, end.suffix) && !strings.HasSuffix(name, "_per"+end.suffix) {
			return end.unit, beside[name]
		}
	}
	return "", ""
}
