package reports_test

import (
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
)

// loaded are two engines at several numbers of clients, one of which takes one request at a time, and both with a mix.
func loaded(launches int) []comparetest.Engine {
	var out []comparetest.Engine
	for n, clients := range []int{1, 2, 4} {
		a, b := comparetest.Loaded(comparetest.Browser(launches), 2*n+1, clients, 20*clients),
			comparetest.Loaded(comparetest.Native(launches), 2*n+2, clients, 20*clients)
		a.Slots = 1
		out = append(out, a, b)
	}
	return append(out, comparetest.Mixed(comparetest.Native(launches), 7, 4, 40, 8))
}

func TestTrafficInReport(t *testing.T) {
	run := comparetest.Run(t, "load", loaded(6)...)
	res := compare.Runs(run)
	charts := drawn(t, res, run)
	tps := named(t, charts, "fig2_tps_vs_concurrency", "Tokens/s of all requests (tokens/s)")
	web, native := tps.points(t, "webllm"), tps.points(t, "llamacpp")
	if len(web) != 3 || len(native) != 3 || native[2][0] != 4 || native[2][1] < 3.5*native[0][1] ||
		web[2][1] > 1.2*web[0][1] {
		t.Errorf("webllm %v, llamacpp %v", web, native)
	}
	for _, id := range []string{"fig1_mem_vs_concurrency", "latency_vs_concurrency", "fig5_mixed_lengths_latency"} {
		if len(charts[id]) == 0 {
			t.Errorf("no chart %s", id)
		}
	}
	tails := named(t, charts, "fig5_mixed_lengths_latency", "Time to first token (ms)")
	if len(tails.Options.Series) != 2 || !strings.Contains(tails.Options.Series[0].Name, ": short with others") {
		t.Errorf("%+v", tails.Options.Series)
	}
}
