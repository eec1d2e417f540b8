package memory_test

import (
	"encoding/json"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

func mappedParts(t *testing.T, change func(*record.Run)) *memory.Parts {
	t.Helper()
	run := comparetest.Run(t, "mapped", comparetest.Mapped(
		comparetest.Measured(comparetest.Browser(6), comparetest.Page())))
	if change != nil {
		change(run)
	}
	res := compare.Runs(run)
	if _, err := json.Marshal(res); err != nil {
		t.Fatal(err)
	}
	return res.Cells[0].Parts
}

// Without a baseline, without a ledger, and without any reading there is nothing to part.
func TestBrowserMemoryNeedsReadings(t *testing.T) {
	for name, change := range map[string]func(*record.Attempt, *record.MetricRow){
		"no baseline": func(a *record.Attempt, m *record.MetricRow) {
			if m.Edge == record.Baseline && a.Sources[m.Source].Method == record.MethodSmapsRollup {
				m.Edge = record.Idle
			}
		},
		"no ledger": func(_ *record.Attempt, m *record.MetricRow) {
			m.Name = strings.Replace(m.Name, "live_bytes", "other_bytes", 1)
		},
	} {
		p := mappedParts(t, func(run *record.Run) {
			for _, a := range run.Attempts {
				for i := range a.Metrics {
					change(a, &a.Metrics[i])
				}
			}
		})
		if len(p.Beyond) != 0 || p.Shown(figure.FrameworkOverhead).Name != figure.FrameworkOverhead {
			t.Errorf("%s: %+v", name, p.Beyond)
		}
	}
	if p := partsOf(t, measured(t, 6)); p.Beyond != nil {
		t.Errorf("%+v", p.Beyond)
	}
}

// The prediction of everything but the model is compared with the sum of its parts, and named so.
func TestBrowserOverheadIsPredicted(t *testing.T) {
	e := comparetest.Mapped(comparetest.Measured(comparetest.Browser(6), comparetest.Page()))
	e.Prediction = prediction(comparetest.Predict(figure.FrameworkOverhead, 10, 20, 30, ""))
	c := compare.Runs(comparetest.Run(t, "mapped", e)).Cells[0]
	f, ok := c.Prediction.Part(figure.FrameworkOverhead)
	if !ok || f.Title != "growth of the browser itself and everything else" ||
		*f.Measured != c.Parts.Component(figure.FrameworkOverhead).Center() {
		t.Errorf("%+v", f)
	}
	words := strings.Join(c.Prediction.Recommendations, " ")
	if !strings.Contains(words, "from the steps of the load") {
		t.Error(words)
	}
}
