package timing

import (
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// counters are figures that a server counts up from its start. Others go up and down.
var counters = []string{"preemptions_count", "prompt_tokens_count", "generated_tokens_count",
	"cached_prompt_tokens_count"}

// Server is what servers report about themselves, by name: of counters the increase, of other figures the peak.
func Server(attempts []*record.Attempt) []evidence.Figure {
	sees := map[string]string{}
	for _, a := range attempts {
		for _, m := range a.Metrics {
			if s := a.Sources[m.Source]; s.Method == evidence.ServerMethod {
				sees[m.Name] = s.Sees
			}
		}
	}
	var out []evidence.Figure
	for _, name := range slices.Sorted(maps.Keys(sees)) {
		out = append(out, serverFigure(attempts, name, sees[name]))
	}
	return out
}

func serverFigure(attempts []*record.Attempt, name, sees string) evidence.Figure {
	counted := slices.Contains(counters, name)
	words, end := name, name[strings.LastIndexByte(name, '_')+1:]
	units := map[string]string{"bytes": "bytes", "ms": "ms"}
	if end == "bytes" || end == "ms" || end == "count" || end == "ratio" {
		words = strings.TrimSuffix(name, "_"+end)
	}
	what, how := ", peak", "the highest reading during a repetition"
	if counted {
		what = ", increase"
		how = "the last reading of a repetition minus the first; includes other clients of the server"
	}
	f := evidence.Figure{Name: name, Title: strings.ReplaceAll(words, "_", " ") + what, Unit: units[end],
		Reported: true, Method: evidence.ServerMethod, Blind: evidence.Blind(attempts, evidence.ServerMethod),
		How: sees + "; " + how}
	if !counted {
		f.Blind += "; peaks between readings"
	}
	if counted {
		f.Absent = "not read twice, or the server reset its counter"
	}
	return f.Over(attempts, func(a *record.Attempt) float64 { return served(a, name, counted) })
}

// served is a launch's figure over all its sources: the highest peak, or the sum of increases. It is NaN if it was not
// read, or if a counter was read once only or fell, as it does when a server restarts.
func served(a *record.Attempt, name string, counted bool) float64 {
	of := map[int][]record.MetricRow{}
	for _, m := range a.Metrics {
		if m.Name == name && a.Sources[m.Source].Method == evidence.ServerMethod {
			of[m.Source] = append(of[m.Source], m)
		}
	}
	sum, highest, ok := 0.0, 0.0, len(of) > 0
	for _, rows := range of {
		slices.SortStableFunc(rows, func(a, b record.MetricRow) int { return int(a.NS - b.NS) })
		for i, m := range rows {
			highest = max(highest, m.Value)
			ok = ok && (!counted || i == 0 || m.Value >= rows[i-1].Value)
		}
		ok = ok && (!counted || len(rows) > 1)
		sum += rows[len(rows)-1].Value - rows[0].Value
	}
	switch {
	case !ok:
		return math.NaN()
	case counted:
		return sum
	}
	return highest
}

// Reported are the engine's own figures, by name.
func Reported(attempts []*record.Attempt) []evidence.Figure {
	names := map[string]float64{}
	for _, r := range evidence.Requests(attempts) {
		maps.Copy(names, r.Reported)
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
		f := evidence.Figure{Name: name, Title: "reported: " + name, Unit: unit, Reported: true, Beside: beside,
			How: name + " as the engine reports it, by its own clock and count; not measured by llmparity"}
		out = append(out, f.PerRequest(attempts, of))
	}
	return out
}
