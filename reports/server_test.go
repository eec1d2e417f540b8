package reports_test

import (
	"bytes"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
	"llmparity/reports"
)

func TestWhatAServerSaysOfItselfIsShown(t *testing.T) {
	run := comparetest.Run(t, "served", comparetest.Served(1))
	render := func() string {
		var b bytes.Buffer
		res := compare.Runs(run)
		if err := colours.HTML(&b, res, run); err != nil {
			t.Fatal(err)
		}
		if err := reports.JSON(&b, res); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const title = "What the server says of itself"
	if strings.Contains(render(), title) {
		t.Error("shown of a server that says nothing")
	}
	a := run.Attempts[0]
	a.Sources[99] = record.Source{Role: "server", Method: "server_metrics", Sees: "its own word & no more",
		Blind: "what it is silent about"}
	for i, v := range []float64{0.125, 0.375, 0.25} {
		a.Metrics = append(a.Metrics, record.MetricRow{Source: 99, NS: int64(i), Name: "kv_cache_usage_ratio",
			Value: v})
	}
	got := render()
	for _, want := range []string{title, "kv cache usage, peak", "0.375", "its own word &amp; no more",
		"what it is silent about", `"name": "kv_cache_usage_ratio"`} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q", want)
		}
	}
}
