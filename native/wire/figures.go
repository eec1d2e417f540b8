package wire

import "encoding/json"

// Figures gives those fields of a JSON object that are numbers, under their own names; of nothing, or null, none. What
// is no number is left out, so that a new field of another kind does no harm.
func Figures(object json.RawMessage) (map[string]float64, error) {
	figures := map[string]float64{}
	if len(object) == 0 {
		return figures, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	for name, raw := range fields {
		var v *float64
		if json.Unmarshal(raw, &v) == nil && v != nil {
			figures[name] = *v
		}
	}
	return figures, nil
}
