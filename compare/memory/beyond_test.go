package memory_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
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

// live notes what the ledger had just before the highest moment.
func live(run *record.Run, bytes float64) {
	for _, a := range run.Attempts {
		for id, s := range a.Sources {
			if s.Method == figure.Ledger {
				load, _ := a.Phase(record.Load)
				a.Metrics = append(a.Metrics,
					record.MetricRow{Source: id, NS: load.BeginNS, Name: "live_bytes", Value: bytes})
			}
		}
	}
}

func TestBrowserMemoryIsSplit(t *testing.T) {
	p := mappedParts(t, func(run *record.Run) { live(run, 3<<20) })
	addsUp(t, p)
	if len(p.Beyond) != 9 || p.Beyond[0].Name != figure.BrowserShare || p.Beyond[8].Name != figure.EverythingElse {
		t.Fatalf("%+v", p.Beyond)
	}
	model := func(i int) float64 {
		return p.Component(figure.ModelWeights).Values[i].Value + p.Component(figure.KVCache).Values[i].Value +
			p.Component(figure.Activations).Values[i].Value
	}
	for i, whole := range p.Component(figure.FrameworkOverhead).Values {
		sum := 0.0
		for _, c := range p.Beyond[1:8] {
			sum += c.Values[i].Value
		}
		share, rest := p.Component(figure.BrowserShare).Values[i].Value,
			p.Component(figure.EverythingElse).Values[i].Value
		if math.Abs(sum-share) > 1e-9 || math.Abs(share+rest-whole.Value) > 1e-9 {
			t.Errorf("launch %d: parts come to %v, their sum is %v, with everything else %v; %v is to be parted", i+1,
				sum, share, rest, whole.Value)
		}
		n := float64(whole.Attempt)
		for name, want := range map[string]float64{
			figure.PageCopies:      11 + n,
			figure.TransferBuffers: 4 * (5 + n),
			figure.GPUProcess:      420 - 88 + 12 + n + 1 + 0.01*n - 3,
			figure.PageHeaps:       310 - 96 + 1 + 0.01*n,
			figure.ProgramFiles:    4 * 3,
			figure.OtherProcesses:  124 - 118 + 10 + n + 1 + 0.01*n + 53 - 52 + 13 + n + 1 + 0.01*n,
			figure.NotYetThere:     3 - model(i),
		} {
			if got := p.Component(name).Values[i].Value; math.Abs(got-want) > 1e-4 {
				t.Errorf("launch %d: %s is %v, want %v", i+1, name, got, want)
			}
		}
	}
	if c := p.Component(figure.TransferBuffers); c.Method != record.MethodSmapsRollup || c.Confidence != "high" ||
		c.How == "" {
		t.Errorf("%+v", c)
	}
	if c := p.Component(figure.EverythingElse); c.Method != evidence.ByDifference || c.Confidence != "low" ||
		p.Shown(figure.FrameworkOverhead).Name != c.Name {
		t.Errorf("%+v", c)
	}
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
	if !ok || f.Title != "memory of the browser itself and everything else" ||
		*f.Measured != c.Parts.Component(figure.FrameworkOverhead).Center() {
		t.Errorf("%+v", f)
	}
	words := strings.Join(c.Prediction.Recommendations, " ")
	if !strings.Contains(words, "from the steps of the load") {
		t.Error(words)
	}
}
