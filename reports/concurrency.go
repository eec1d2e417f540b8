package reports

import (
	"llmparity/compare"
	"llmparity/internal/figure"
)

// manyAtOnce are the axes along which more requests come at once, with the ends of charts' names.
func manyAtOnce() [][3]string {
	return [][3]string{{compare.AxisClients, "concurrency", "clients at once"},
		{compare.AxisBatch, "batch_size", "requests in a batch"}}
}

// memoryOverConcurrency is memory over how many requests come at once, where a run has several numbers of them.
func memoryOverConcurrency(v *view) []chart {
	return v.overConcurrency("fig1_mem_vs_", "Memory over ",
		append(overLengths(figure.PeakPSS, figure.Increase, figure.PeakRSS),
			insideOf(figure.KVUsed), insideOf(figure.KVReserved)))
}

// speedOverConcurrency is what all requests yield together, and one of them among the others.
func speedOverConcurrency(v *view) []chart {
	return v.overConcurrency("fig2_tps_vs_", "Tokens a second over ",
		overLengths(figure.AggregateTPS, figure.DecodeTPS, figure.RequestRate, figure.Goodput))
}

// latencyOverConcurrency is what one request waits among the others.
func latencyOverConcurrency(v *view) []chart {
	var names []string
	for _, of := range []string{figure.OfTTFT, figure.Queueing, figure.TPOT, figure.E2E} {
		for _, share := range []float64{0.5, 0.95, 0.99} {
			names = append(names, figure.Percentile(of, share))
		}
	}
	return v.overConcurrency("latency_vs_", "Latency over ", overLengths(names...))
}

func (v *view) overConcurrency(id, title string, figures []ofLength) []chart {
	var out []chart
	for _, axis := range manyAtOnce() {
		out = append(out, v.over(axis[0], chart{ID: id + axis[1], Section: "traffic", Title: title + axis[2]},
			figures)...)
	}
	return out
}
