// Package accuracy is the table of how near a calculation of a model's memory comes to what is measured, in general:
// for who foretells, and for who judges what was foretold. It knows components by the names of memory profiles of
// schema 2.0, and nothing of any engine.
package accuracy

// Expected is how near a calculation of a component is to what is measured.
type Expected struct {
	Match    string  `json:"expected_match"`
	Variance float64 `json:"variance_percent"`
}

// Of gives a component's row; false where nothing general is known of it.
func Of(component string) (Expected, bool) {
	e, ok := Table()[component]
	return e, ok
}

// Table has a row for each component of which something general is known.
func Table() map[string]Expected {
	return map[string]Expected{
		"model_weights": {"95-100%", 2}, "kv_cache": {"80-95%", 15}, "activations": {"60-85%", 30},
		"framework_overhead": {"50-80%", 40},
		"total":              {"85-95%", 10},
	}
}
