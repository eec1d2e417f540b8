package llamacpp

import (
	"encoding/json"
	"fmt"

	"llmparity/native/wire"
)

// event is what we read of one server-sent event of /completion. Fields that a server leaves out stay zero.
type event struct {
	Content   string          `json:"content"`
	Tokens    []int           `json:"tokens"`
	Predicted int             `json:"tokens_predicted"` // so far, this event's included
	Evaluated int             `json:"tokens_evaluated"`
	Cached    int             `json:"tokens_cached"` // in its slot's KV cache, once the completion has ended
	Slot      int             `json:"id_slot"`       // from 0
	Stop      bool            `json:"stop"`
	StopType  string          `json:"stop_type"`
	Timings   json.RawMessage `json:"timings"`
	Error     *wire.Refusal   `json:"error"`
}

// together adds up what several completions counted and took; of one alone it keeps the rates as well.
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

// reported gives the server's own figures under its own names.
func reported(timings json.RawMessage) (map[string]float64, error) {
	figures, err := wire.Figures(timings)
	if err != nil {
		return nil, fmt.Errorf("llama-server's timings: %w", err)
	}
	return figures, nil
}
