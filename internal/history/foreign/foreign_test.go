package foreign

import (
	"testing"

	"llmparity/internal/history"
	"llmparity/internal/kit/check"
)

var of = Options{Commit: history.Commit{SHA: "1a2b3c4"}, Name: "file"}

func TestLinesOfOneNameAreLaunches(t *testing.T) {
	all, err := Read([]byte("cpu: Mouse\nBenchmarkA-8 1 5 ns/op 9 B/s\nBenchmarkB-8 1 3 ns/op\nBenchmarkA-8 1 7 ns/op 8 B/s\n"), of)
	check.Err(t, err)
	r := all[0]
	check.Err(t, r.Check())
	if len(r.Cells) != 2 || len(r.Launches) != 3 || r.Machine != "Mouse" || r.Figures[0].Better != "lower" ||
		r.Figures[1].Better != "higher" {
		t.Errorf("%+v", r)
	}
	for _, m := range r.Summaries() {
		if m.Cell == 0 && m.Name == 0 && (m.Value != 6 || m.N != 2) {
			t.Errorf("ns/op of A: %+v", m)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("BenchmarkA-8 1 5 ns/op 9 B/s\n"))
	f.Add([]byte(`[{"name": "a", "unit": "ms", "value": 3}]`))
	f.Add([]byte(`window.BENCHMARK_DATA = {"entries": {"a": [{"commit": {"id": "abcd"}, "benches": [{"name": "b", "unit": "x/s", "value": 1}]}]}};`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := Read(text, of)
		if err != nil {
			return
		}
		for _, r := range all {
			if _, _, err := r.Encode(); err == nil {
				r.Summaries()
			}
		}
	})
}
