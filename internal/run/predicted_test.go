package run_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/run"
	"llmparity/internal/sample/gpu"
)

// predicted predicts 10 MiB for every cell.
func predicted(_ context.Context, c record.Cell) record.Prediction {
	return record.Prediction{Source: "gguf", Setup: map[string]string{"of": c.Engine},
		Parts: []record.Predicted{{Name: "increase", Best: 10 << 20, Method: "said"}}}
}

// judged returns the level of an engine.
func judged(levels map[string]record.RiskLevel) func(context.Context, record.Prediction, *gpu.Monitor) record.Risk {
	return func(_ context.Context, p record.Prediction, _ *gpu.Monitor) record.Risk {
		return record.Risk{Level: levels[p.Setup["of"]], Reasons: []string{"it is " + p.Setup["of"]},
			Recommendations: []string{"take less"}}
	}
}

func TestPredictionIsRecordedAfterPrepare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &scripted{name: "a"}, &scripted{name: "b"}
		o := options(t, a, b)
		o.Predict = func(ctx context.Context, c record.Cell) record.Prediction {
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
		if len(r.Risks) != 0 {
			t.Errorf("unexpected risks %+v", r.Risks)
		}
	})
}

func TestCellThatWillNotFitIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := &scripted{name: "a"}, &scripted{name: "b"}, &scripted{name: "c"}
		o := options(t, a, b, c)
		o.Predict, o.Judge = predicted, judged(
			map[string]record.RiskLevel{"a": record.RiskHigh, "b": record.RiskMedium, "c": record.RiskLow})
		var said []string
		o.Progress = func(e run.Event) {
			if e.Kind == run.Judged {
				said = append(said, e.Engine+": "+e.Text)
			}
		}
		r, err := do(t, t.Context(), o)
		if fault.Of(err) != fault.WontFit ||
			!strings.Contains(err.Error(), "it is a; take less; --no-check-oom") {
			t.Errorf("class %s: %v", fault.Of(err), err)
		}
		if a.launches != 0 || b.launches != 4 || c.launches != 4 || len(r.Attempts) != 8 {
			t.Errorf("%d, %d and %d launches, %d attempts", a.launches, b.launches, c.launches, len(r.Attempts))
		}
		if len(said) != 2 || !strings.HasPrefix(said[0], "a: prompt 1 skipped") ||
			!strings.HasPrefix(said[1], "b: medium risk") {
			t.Errorf("said %q", said)
		}
		if x, y, z := r.Risks[1], r.Risks[2], r.Risks[3]; !x.Refused || y.Refused || z.Refused ||
			x.Level != record.RiskHigh || z.Level != record.RiskLow {
			t.Errorf("%+v", r.Risks)
		}
		if r.Status != record.Failed {
			t.Errorf("the run is %s", r.Status)
		}
	})
}

func TestNoCheckOOMLaunchesAnyway(t *testing.T) {
	for checks, launches := range map[bool]int{true: 4, false: 8} {
		synctest.Test(t, func(t *testing.T) {
			a := &scripted{name: "a"}
			o := options(t, a)
			o.Plan.Prompts, o.Plan.CheckOOM = plan.Texts("long", "short"), &checks
			o.Predict = func(_ context.Context, c record.Cell) record.Prediction {
				return record.Prediction{Setup: map[string]string{"of": c.Prompt},
					Parts: []record.Predicted{{Name: "total", Best: 1}}}
			}
			o.Judge = judged(map[string]record.RiskLevel{"long": record.RiskHigh, "short": record.RiskLow})
			r, err := do(t, t.Context(), o)
			refused := fault.Of(err) == fault.WontFit
			if refused != checks || a.launches != launches || r.Risks[1].Refused != checks ||
				r.Risks[1].Level != record.RiskHigh {
				t.Errorf("checked %v: %d launches, %+v: %v", checks, a.launches, r.Risks, err)
			}
			tried := slices.ContainsFunc(r.Attempts, func(a *record.Attempt) bool { return a.Cell == 1 })
			if tried == checks {
				t.Errorf("checked %v, and the cell was tried: %v", checks, tried)
			}
		})
	}
}

func TestFailedPredictionDoesNotFailRun(t *testing.T) {
	for name, c := range map[string]struct {
		predict func(context.Context, record.Cell) record.Prediction
		why     string
	}{
		"it panics": {func(context.Context, record.Cell) record.Prediction { panic("a bug") }, "a bug"},
		"it can't": {func(context.Context,
			record.Cell) record.Prediction {
			return record.Prediction{Absent: "no file"}
		}, "no file"},
		"it is empty": {func(context.Context, record.Cell) record.Prediction { return record.Prediction{} },
			"no information"},
		"it never comes": {func(ctx context.Context, _ record.Cell) record.Prediction {
			<-ctx.Done()
			time.Sleep(time.Hour)
			return record.Prediction{}
		}, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &scripted{name: "a"}
				o := options(t, a)
				o.Predict = c.predict
				o.Judge = func(context.Context, record.Prediction, *gpu.Monitor) record.Risk { panic("another bug") }
				r, err := do(t, t.Context(), o)
				if err != nil || a.launches != 4 {
					t.Errorf("%d launches: %v", a.launches, err)
				}
				if p := r.Predictions[1]; !strings.Contains(p.Absent, c.why) || len(p.Parts) != 0 {
					t.Errorf("%+v", p)
				}
				if risk := r.Risks[1]; risk.Level != record.RiskUnknown || risk.Refused ||
					!strings.Contains(strings.Join(risk.Reasons, ""), "another bug") {
					t.Errorf("%+v", risk)
				}
				time.Sleep(2 * time.Hour) // let the abandoned prediction end
			})
		})
	}
}

// A hung prediction is waited for once, not for each cell. An interruption leaves no failed predictions.
func TestPredictionTimeout(t *testing.T) {
	for name, interrupted := range map[string]bool{"it never comes": false, "it is interrupted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				o := options(t, &scripted{name: "a"})
				o.Plan.Prompts = plan.Texts("first", "second", "third", "fourth")
				var asked atomic.Int32 // also by abandoned goroutines
				o.Predict = func(ctx context.Context, c record.Cell) record.Prediction {
					if asked.Add(1) == 1 {
						return predicted(ctx, c)
					}
					if interrupted {
						cancel()
					}
					time.Sleep(time.Hour)
					return record.Prediction{}
				}
				var waited time.Duration
				start := time.Now()
				o.Progress = func(e run.Event) {
					if e.Kind == run.Launched && waited == 0 {
						waited = time.Since(start)
					}
				}
				r, err := do(t, ctx, o)
				absent := 0
				for _, p := range r.Predictions {
					if p.Absent != "" {
						absent++
					}
				}
				if asked.Load() != 2 || interrupted &&
					(absent != 0 || len(r.Predictions) != 1 || r.Status != record.Interrupted) ||
					!interrupted && (err != nil || absent != 3 || waited > 40*time.Second) {
					t.Errorf("asked %d times, waited %s, the run is %s: %+v, %v", asked.Load(), waited, r.Status,
						r.Predictions, err)
				}
				cancel()
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
