package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// made describes every attempt in the record: cell and repetition, the attempt that opened its session, and its end if
// it is not ok.
func made(r *record.Run) string {
	var out []string
	for _, a := range r.Attempts {
		text := fmt.Sprintf("%d.%d", a.Cell, a.Repetition)
		if a.OpenedBy != 0 {
			text += fmt.Sprintf("<%d", a.OpenedBy)
		}
		if a.Status != record.OK {
			text += fmt.Sprintf(" %s %s", a.Status, a.Class)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

var errAbsent = fault.New(fault.NoLlamaServer, "get it", "it is not here")

// failure is what happens in a run of engine a, or of a and b.
type failure struct {
	launches []error // of a's launches, in turn; later ones succeed
	third    func(context.CancelCauseFunc) func(context.Context) error
	change   func(o *trial, a *telling)
	beside   bool // b runs, too

	made   string
	kind   fault.Kind // of the run's error
	says   string     // part of it
	warned string     // code of a warning about the run
}

func crashing(context.CancelCauseFunc) func(context.Context) error { return crashes }
func hanging(context.CancelCauseFunc) func(context.Context) error  { return hangs }

func isolated(isolation string, repetitions int, prompts ...string) func(*trial, *telling) {
	return func(o *trial, _ *telling) {
		o.Plan.Isolation, o.Plan.Repetitions, o.Plan.Prompts = isolation, repetitions, plan.Texts(prompts...)
	}
}

func expecting(ids ...int) func(*trial, *telling) {
	return func(o *trial, _ *telling) { o.Expected = map[string][]int{"p": ids} }
}

// asksGPU has engine a report that it was asked for a GPU, and runs on the CPU.
func asksGPU(_ *trial, a *telling) { a.wants = "gpu" }

// A plan that allows it measures the other device, and the record has both.
func TestFallbackIsAllowed(t *testing.T) {
	for _, isolation := range []string{plan.OfLaunch, plan.Reused} {
		allowed(t, isolation)
	}
}

func allowed(t *testing.T, isolation string) {
	synctest.Test(t, func(t *testing.T) {
		a := &telling{scripted: scripted{name: "a"}}
		o := options(t, a)
		o.Plan.Isolation = isolation
		o.Plan.AllowFallback = true
		asksGPU(nil, a)
		r, err := do(t, t.Context(), o)
		check.Err(t, err)
		for _, a := range r.Attempts {
			d, _ := a.Device()
			if d.Asked != "gpu" || d.Class != record.CPU || !warnsOnce(a, "fallback") {
				t.Errorf("launch %d: %+v, %+v", a.ID, d, a.Warnings)
			}
		}
	})
}

// What an engine silently did otherwise ends its cell, or is a warning in every launch if the plan allows it. What is
// unknown is a warning in any case.
func TestAskedAndGot(t *testing.T) {
	missed := ran.With(ran.Threads, 4, 1, "a log")
	unknown := ran.As(ran.Power, "low-power", "", "WebGPU does not report it")
	for name, c := range map[string]struct {
		row     ran.Row
		allowed bool
		fails   bool
	}{"missed": {missed, false, true}, "allowed": {missed, true, false}, "unknown": {unknown, false, false}} {
		for _, isolation := range []string{plan.OfLaunch, plan.Reused} {
			synctest.Test(t, func(t *testing.T) {
				a := &telling{scripted: scripted{name: "a"}, rows: []ran.Row{c.row}}
				o := options(t, a)
				o.Plan.Isolation, o.Plan.AllowFallback = isolation, c.allowed
				r, err := do(t, t.Context(), o)
				if c.fails != (fault.Of(err) == fault.Fallback) {
					t.Errorf("%s, %s: %v", name, isolation, err)
				}
				for _, a := range r.Attempts {
					rows := a.Ran()
					if len(rows) != 2 || rows[1] != c.row {
						t.Errorf("%s, %s, launch %d: %+v", name, isolation, a.ID, rows)
					}
					if failed := a.Class == record.Fallback; failed != c.fails {
						t.Errorf("%s, %s, launch %d: class %q", name, isolation, a.ID, a.Class)
					}
					if !c.fails && !warnsOnce(a, "fallback") {
						t.Errorf("%s, %s, launch %d: %+v", name, isolation, a.ID, a.Warnings)
					}
				}
			})
		}
	}
}

func warnsOnce(a *record.Attempt, code string) bool {
	n := 0
	for _, w := range a.Warnings {
		if w.Code == code {
			n++
		}
	}
	return n == 1
}

// risky refuses cells of engine a for lack of memory; of b they are only at risk.
func risky(checks bool) func(*trial, *telling) {
	return func(o *trial, _ *telling) {
		o.predict, o.Plan.CheckOOM = predicted, &checks
		o.judge = func(_ context.Context, p record.Prediction, _ *gpu.Monitor) record.Risk {
			level := map[string]record.RiskLevel{"a": record.RiskHigh, "b": record.RiskMedium}[p.Setup["of"]]
			return record.Risk{Level: level, Reasons: []string{"too much"}, Recommendations: []string{"take less"}}
		}
	}
}

// twoSetups are setups of one repetition, of which the first can't be built or lacks engine a.
func twoSetups(builds bool) func(*trial, *telling) {
	return func(o *trial, _ *telling) {
		o.Plan.ThreadCounts, o.Plan.Repetitions, o.Plan.Warmup.Launches = []int{1, 2}, 1, 0
		var said []string
		perSetup(o, &said, func(s *plan.Setup, name string) engine.Engine {
			if s.ID == 1 && name == "a" {
				return &scripted{name: name, absent: errAbsent}
			}
			return &scripted{name: name}
		})
		build := o.Open
		o.Open = func(ctx context.Context, s *plan.Setup) (run.Parts, error) {
			if s.ID == 1 && !builds {
				return run.Parts{}, fault.New(fault.BadModel, "get one", "there is no such model")
			}
			return build(ctx, s)
		}
	}
}

func failures() map[string]failure {
	crash, lost := engine.Fail(record.Crash, "it crashed"), engine.Fail(record.DeviceLost, "the device was lost")
	unstarted := &engine.Failure{Class: record.Start, Err: fault.New(fault.NoChrome, "", "Chrome did not answer")}
	adapter := fault.New(fault.NoAdapter, "", "no adapter")
	return map[string]failure{
		"a lost device": {launches: []error{nil, lost}, made: "1.0, 1.1 failed device-lost, 1.2, 1.3", kind: fault.Run,
			says: "the device was lost"},
		"a missing part ends its cell": {launches: []error{adapter}, beside: true, kind: fault.NoAdapter,
			made: "1.0 failed set-up, 2.0, 2.1, 2.2, 2.3"},
		"a warm-up crashes": {launches: []error{crash}, made: "1.0 failed crash, 1.0, 1.1, 1.2, 1.3",
			warned: "warmup-repeated"},
		"a warm-up crashes twice": {launches: []error{crash, crash}, kind: fault.Run, warned: "warmup-repeated",
			made: "1.0 failed crash, 1.0 failed crash, 1.1, 1.2, 1.3"},
		"no start": {launches: []error{unstarted}, made: "1.0 failed start, 1.0, 1.1, 1.2, 1.3",
			warned: "warmup-repeated"},
		"no start twice ends the cell": {launches: []error{unstarted, unstarted}, kind: fault.NoChrome,
			made: "1.0 failed start, 1.0 failed start", warned: "warmup-repeated"},
		"no start of a repetition": {launches: []error{nil, unstarted}, made: "1.0, 1.1 failed start, 1.2, 1.3",
			kind: fault.NoChrome},
		"no start of two repetitions": {launches: []error{nil, unstarted, unstarted}, kind: fault.NoChrome,
			made: "1.0, 1.1 failed start, 1.2 failed start"},
		"another device ends its cell": {beside: true, change: asksGPU, kind: fault.Fallback,
			made: "1.0 failed fallback, 2.0, 2.1, 2.2, 2.3", says: "asks for gpu, but the engine runs on cpu c"},
		"a hung launch": {third: hanging, made: "1.0, 1.1, 1.2 failed timeout, 1.3", kind: fault.Run,
			says: "launch exceeded its time limit of 1m0s; set a higher --timeout"},
		"a slow launch": {kind: fault.Run, made: "1.1 failed timeout", says: "time limit of 1m0s; start a new run with " +
			"--timeout 2m, enough at the speed of this launch", change: func(o *trial, a *telling) {
			o.Plan.Warmup.Launches, o.Plan.Repetitions = 0, 1
			a.generate = func(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
				for i := range r.MaxTokens { // needs 16 s for a token of the warm-up and four others
					if time.Sleep(16 * time.Second); ctx.Err() != nil {
						return record.Usage{}, ctx.Err()
					}
					token(record.Token{Index: i, ID: i, At: time.Now()})
				}
				return record.Usage{PromptIDs: []int{1}, Sent: time.Now(), Finish: "length"}, nil
			}
		}},
		"an interruption": {third: interrupts, made: "1.0, 1.1, 1.2 interrupted cancelled", kind: fault.Interrupted},
		// After a failure the next attempt opens a new session.
		"a crash in a reused session": {third: crashing, change: isolated(plan.Reused, 4, "p"), kind: fault.Run,
			made: "1.0, 1.1, 1.2<2 failed crash, 1.3, 1.4<4"},
		"a hung reused session": {third: hanging, change: isolated(plan.Reused, 4, "p"), kind: fault.Run,
			made: "1.0, 1.1, 1.2<2 failed timeout, 1.3, 1.4<4"},
		"an interrupted reused session": {third: interrupts, change: isolated(plan.Reused, 4, "p"),
			made: "1.0, 1.1, 1.2<2 interrupted cancelled", kind: fault.Interrupted},
		"a crash in a shared session": {third: crashing, change: isolated(plan.Shared, 2, "p", "q", "r"),
			made: "1.0, 1.1, 2.1<2 failed crash, 3.1, 1.2<4, 2.2<4, 3.2<4", kind: fault.Run},
		"a cell's time limit": {third: hanging, beside: true, kind: fault.Run, warned: "cell-timeout",
			made: "1.0, 2.0, 1.1, 2.1, 1.2 failed timeout, 2.2, 2.3", says: "cell exceeded its time limit of 20s",
			change: func(o *trial, _ *telling) { o.Plan.CellTimeout = plan.Duration(20 * time.Second) }},
		"tokens as expected": {change: expecting(0, 1), made: "1.0, 1.1, 1.2, 1.3"},
		"other tokens than expected": {change: expecting(0, 1, 7), kind: fault.Run, made: "1.0 failed bad-output, " +
			"1.1 failed bad-output, 1.2 failed bad-output, 1.3 failed bad-output"},
		"a refused engine": {beside: true, made: "1.1 refused error, 2.0, 2.1, 2.2, 2.3", kind: fault.Run,
			says: "a: not supported", change: func(o *trial, _ *telling) {
				o.refuses = func(c record.Cell) error {
					if c.Engine == "a" {
						return errors.New("not supported")
					}
					return nil
				}
			}},
		"an absent engine": {beside: true, made: "1.1 refused set-up, 2.0, 2.1, 2.2, 2.3", kind: fault.NoLlamaServer,
			change: func(_ *trial, a *telling) { a.absent = errAbsent }},
		"an engine absent in one setup": {beside: true, change: twoSetups(true), kind: fault.NoLlamaServer,
			made: "1.1 refused set-up, 2.1, 3.1, 4.1", says: "a: setup 1: it is not here"},
		"a model missing in one setup": {beside: true, change: twoSetups(false), kind: fault.BadModel,
			made: "1.1 refused set-up, 2.1 refused set-up, 3.1, 4.1", says: "setup 1: there is no such model"},
		"a cell that will not fit": {beside: true, change: risky(true), kind: fault.WontFit,
			made: "2.0, 2.1, 2.2, 2.3", says: "too much; take less; --no-check-oom runs it anyway"},
		"a cell that will not fit with --no-check-oom": {change: risky(false), made: "1.0, 1.1, 1.2, 1.3"},
	}
}

// Each failure is recorded with its class, costs as little as possible, and decides the run's error.
func TestFailures(t *testing.T) {
	for name, c := range failures() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				a, b := &telling{scripted: scripted{name: "a"}}, &scripted{name: "b"}
				o := options(t, a)
				if c.beside {
					o = options(t, a, b)
				}
				if a.do = outcomes(c.launches...); c.third != nil {
					a.do = at(3, c.third(cancel))
				}
				if c.change != nil {
					c.change(&o, a)
				}
				r, err := do(t, ctx, o)
				if fault.Of(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.says) ||
					made(r) != c.made {
					t.Errorf("%v; %s, want %s", err, made(r), c.made)
				}
				want := map[fault.Kind]record.Status{"": record.OK, fault.Interrupted: record.Interrupted}[c.kind]
				if want == "" {
					want = record.Failed
				}
				if n := a.open.Load() + b.open.Load(); r.Status != want || n != 0 {
					t.Errorf("the run is %s, %d sessions are open", r.Status, n)
				}
				if codes := warningsOf(r); c.warned != "" && !strings.Contains(codes, c.warned) {
					t.Errorf("warnings %s", codes)
				}
			})
		})
	}
}

// warningsOf returns the codes of warnings about the run.
func warningsOf(r *record.Run) string {
	var out []string
	for _, w := range r.Warnings {
		out = append(out, w.Code)
	}
	return strings.Join(out, " ")
}
