package wire

import "encoding/json"

// Figures returns the numeric fields of a JSON object by name. Other fields are ignored, so new ones do no harm.
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
