package llamacpp

import (
	"encoding/json"
	"fmt"
)

// event is what we read of one server-sent event of /completion. Fields that a server leaves out stay zero.
type event struct {
	Content   string          `json:"content"`
	Tokens    []int           `json:"tokens"`
	Predicted int             `json:"tokens_predicted"` // so far, this event's included
	Evaluated int             `json:"tokens_evaluated"`
	Cached    int             `json:"tokens_cached"` // in the KV cache, once the completion has ended
	Stop      bool            `json:"stop"`
	StopType  string          `json:"stop_type"`
	Timings   json.RawMessage `json:"timings"`
	Error     *serverError    `json:"error"`
}

// serverError is how llama-server says that it can't, in a body of its own or in an event.
type serverError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Type    string `json:"type"`
}

func (e *serverError) Error() string { return fmt.Sprintf("llama-server: %s (%s)", e.Message, e.Type) }

// together adds up what several completions counted and took; of one alone it keeps the rates as well.
func together(before, now map[string]float64) map[string]float64 {
	if before == nil {
		return now
	}
	sum := map[string]float64{}
	for _, name := range []string{"prompt_n", "prompt_ms", "predicted_n", "predicted_ms", "cache_n", "tokens_predicted"} {
		sum[name] = before[name] + now[name]
	}
	return sum
}

// reported gives the server's own figures under its own names; what isn't a number is left out, so that a new field of another
// kind does no harm.
func reported(timings json.RawMessage) (map[string]float64, error) {
	figures := map[string]float64{}
	if len(timings) == 0 {
		return figures, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(timings, &fields); err != nil {
		return nil, fmt.Errorf("llama-server's timings: %w", err)
	}
	for name, raw := range fields {
		var v *float64
		if json.Unmarshal(raw, &v) == nil && v != nil {
			figures[name] = *v
		}
	}
	return figures, nil
}
