// Package accuracy has the usual accuracy of calculated memory, by component, for predictions and for their validation.
// Components have the names of memory profiles of schema 2.0.
package accuracy

// Expected is the usual accuracy of a calculated component.
type Expected struct {
	Match    string  `json:"expected_match"`
	Variance float64 `json:"variance_percent"`
}

// rows are by component.
var rows = map[string]Expected{"model_weights": {"95-100%", 2}, "kv_cache": {"80-95%", 15},
	"activations": {"60-85%", 30}, "framework_overhead": {"50-80%", 40}, "total": {"85-95%", 10}}

// Of returns a component's row; false if there is none.
func Of(component string) (Expected, bool) {
	e, ok := rows[component]
	return e, ok
}
