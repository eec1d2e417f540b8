package timing

import (
	"strings"
	"testing"

	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

func TestServerFigures(t *testing.T) {
	rows := func(source int, name string, values ...float64) []record.MetricRow {
		var out []record.MetricRow
		for i, v := range values {
			out = append(out, record.MetricRow{Source: source, NS: int64(i), Name: name, Value: v})
		}
		return out
	}
	of := func(id int, rows ...[]record.MetricRow) *record.Attempt {
		a := &record.Attempt{ID: id, Sources: map[int]record.Source{
			1: {Role: "server", Method: "server_metrics", Sees: "its own word", Blind: "what it does not say"},
			2: {Role: "page", Method: "heap_usage"}}}
		for _, r := range rows {
			a.Metrics = append(a.Metrics, r...)
		}
		return a
	}
	const kv, running, preempted, tokens = "kv_cache_usage_ratio", "requests_running_count", "preemptions_count",
		"generated_tokens_count"
	figures := evidence.Summarised(Server([]*record.Attempt{
		of(1, rows(1, kv, 0, 0.25, 0.1), rows(1, running, 0, 1, 0), rows(1, preempted, 7, 7, 9), rows(1, tokens, 500),
			rows(2, "used_bytes", 1, 2)),
		of(2, rows(1, kv, 0, 0.5), rows(1, running, 0, 0), rows(1, preempted, 9, 0, 12), rows(1, tokens, 500)),
	}))
	want := map[string]struct {
		n      int
		median float64
		title  string
	}{kv: {2, 0.375, "kv cache usage, peak"}, running: {2, 0.5, "requests running, peak"},
		preempted: {1, 2, "preemptions, increase"}, tokens: {}}
	if len(figures) != len(want) {
		t.Fatalf("%d figures: %+v", len(figures), figures)
	}
	for _, f := range figures {
		w := want[f.Name]
		if f.N != w.n || f.Known() && (f.Center() != w.median || f.Title != w.title) || f.Known() != (w.n > 0) {
			t.Errorf("%s: %+v, want %+v", f.Name, f, w)
		}
		if !f.Reported || f.Method != "server_metrics" || !strings.HasPrefix(f.How, "its own word") ||
			!strings.HasPrefix(f.Blind, "what it does not say") {
			t.Errorf("%s does not say whose word it is: %+v", f.Name, f)
		}
	}
	if f := Server([]*record.Attempt{of(1, rows(2, "used_bytes", 1))}); f != nil {
		t.Errorf("where no server says anything: %+v", f)
	}
}
