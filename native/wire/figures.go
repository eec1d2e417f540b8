package wire

import "encoding/json"

// Figures returns the numeric fields of a JSON object by name. Other fields are ignored, so new ones do no harm.
func Figures(object json.RawMessage) (map[string]float64, error) {
	figures := map[string]float64{}
	if len(object) == 0 {
		return figures, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	for name, v := range fields {
		if n, ok := v.(float64); ok {
			figures[name] = n
		}
	}
	return figures, nil
}
