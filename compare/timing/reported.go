package timing

import (
	"maps"
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Reported are the engine's own, in the order of their names.
func Reported(attempts []*record.Attempt) []evidence.Figure {
	names := map[string]bool{}
	for _, a := range attempts {
		for _, r := range a.Measured() {
			for name := range r.Reported {
				names[name] = true
			}
		}
	}
	out := []evidence.Figure{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		unit, beside := figure.Reported(name)
		of := func(r *record.Request) float64 {
			v, ok := r.Reported[name]
			if !ok {
				return math.NaN()
			}
			return v
		}
		out = append(out, evidence.PerRequest(attempts, of,
			evidence.Figure{Name: name, Title: "reported: " + name, Unit: unit, Reported: true, Beside: beside,
				How: name + " as the engine reports it, by its own clock and count; not measured by llmparity"}))
	}
	return out
}
