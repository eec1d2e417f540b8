package llamacpp

import (
	"encoding/json"
	"fmt"

	"llmparity/native/wire"
)

// event holds the fields of a /completion event that we use. Missing fields are zero.
type event struct {
	Content   string          `json:"content"`
	Tokens    []int           `json:"tokens"`
	Predicted int             `json:"tokens_predicted"` // so far, including this event
	Evaluated int             `json:"tokens_evaluated"`
	Cached    int             `json:"tokens_cached"` // in the slot's KV cache after the completion
	Slot      int             `json:"id_slot"`       // from 0
	Stop      bool            `json:"stop"`
	StopType  string          `json:"stop_type"`
	Timings   json.RawMessage `json:"timings"`
	Error     json.RawMessage `json:"error"`
}

// together adds the counts and times of several completions; those of a single one keep their rates, too.
func together(before, now map[string]float64) map[string]float64 {
	if before == nil {
		return now
	}
	sum := map[string]float64{}
	for _, name := range []string{"prompt_n", "prompt_ms", "predicted_n", "predicted_ms", "cache_n",
		"tokens_predicted"} {
		sum[name] = before[name] + now[name]
	}
	return sum
}

// reported returns the server's figures under its own names.
func reported(timings json.RawMessage) (map[string]float64, error) {
	figures, err := wire.Figures(timings)
	if err != nil {
		return nil, fmt.Errorf("llama-server's timings: %w", err)
	}
	return figures, nil
}
