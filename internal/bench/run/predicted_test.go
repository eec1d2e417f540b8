package run_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/record"
)

// predicted predicts 10 MiB for every cell.
func predicted(_ context.Context, c record.Cell) record.Prediction {
	return record.Prediction{Source: "gguf", Setup: map[string]string{"of": c.Engine},
		Parts: []record.Predicted{{Name: "increase", Best: 10 << 20, Method: "said"}}}
}

func TestPredictionIsRecordedAfterPrepare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &scripted{name: "a"}, &scripted{name: "b"}
		o := options(t, a, b)
		o.predict = func(ctx context.Context, c record.Cell) record.Prediction {
			if a.prepared != 1 || b.prepared != 1 || a.launches+b.launches != 0 {
				t.Errorf("%s: predicted after %d and %d preparations and %d launches", c.Engine, a.prepared,
					b.prepared, a.launches+b.launches)
			}
			return predicted(ctx, c)
		}
		r := whole(t, o)
		for id, engine := range map[int]string{1: "a", 2: "b"} {
			p := r.Predictions[id]
			part, ok := p.Part("increase")
			if p.Cell != id || p.Setup["of"] != engine || !ok || part.Best != 10<<20 || p.Absent != "" {
				t.Errorf("of cell %d: %+v", id, p)
			}
		}
		if len(r.Risks) != 2 || r.Risks[1].Level != record.RiskUnknown {
			t.Errorf("risks %+v", r.Risks)
		}
	})
}

// A prediction that is missing, empty or late does not fail the run; a late one is waited for once.
func TestAbsentPredictions(t *testing.T) {
	for want, predict := range map[string]func(context.Context, record.Cell) record.Prediction{
		"no file": func(context.Context, record.Cell) record.Prediction {
			return record.Prediction{Absent: "no file"}
		},
		"no information": func(context.Context, record.Cell) record.Prediction { return record.Prediction{} },
		"longer than 30s": func(ctx context.Context, _ record.Cell) record.Prediction {
			<-ctx.Done()
			return record.Prediction{}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &scripted{name: "a"}
			o := options(t, a)
			o.Plan.Prompts, o.predict = plan.Texts("p", "q"), predict
			begin, waited := time.Now(), time.Duration(0)
			o.Progress = func(e run.Event) {
				if e.Kind == run.Launched && waited == 0 {
					waited = time.Since(begin)
				}
			}
			o.judge = func(ctx context.Context, _ record.Prediction, _ *gpu.Monitor) record.Risk {
				<-ctx.Done()
				return record.Risk{Level: record.RiskHigh}
			}
			r := whole(t, o)
			for id := 1; id <= 2; id++ {
				if p := r.Predictions[id]; !strings.Contains(p.Absent, want) || len(p.Parts) != 0 ||
					r.Risks[id].Level != record.RiskUnknown {
					t.Errorf("%+v, %+v", p, r.Risks[id])
				}
			}
			if waited > 100*time.Second {
				t.Errorf("waited %s", waited)
			}
		})
	}
}

// An open session would lower free memory.
func TestSharedCellsAreJudgedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &telling{scripted: scripted{name: "a"}}
		o := options(t, a)
		isolated(plan.Shared, 2, "p", "q", "r")(&o, a)
		o.predict = predicted
		judged := 0
		o.judge = func(context.Context, record.Prediction, *gpu.Monitor) record.Risk {
			if judged++; a.open.Load() != 0 {
				t.Error("a cell is judged while a session is open")
			}
			if judged == 2 {
				return record.Risk{Level: record.RiskHigh, Reasons: []string{"too much"}}
			}
			return record.Risk{Level: record.RiskLow}
		}
		r, err := do(t, t.Context(), o)
		if err == nil || judged != 3 || len(r.Attempts) != 5 || !r.Risks[2].Refused || a.launches != 2 {
			t.Errorf("%v; %d judged, %d attempts, %d launches, %+v", err, judged, len(r.Attempts), a.launches, r.Risks)
		}
	})
}
