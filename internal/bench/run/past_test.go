package run_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// brokenOff returns the folder of a run interrupted in its nth measured generation.
func brokenOff(t *testing.T, o trial, e *scripted, in int) string {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	e.do = at(in, interrupts(cancel))
	dir, err := execute(ctx, o)
	if fault.Of(err) != fault.Interrupted {
		t.Fatalf("%q, %v", dir, err)
	}
	e.do = nil
	return dir
}

// resumed resumes a run.
func resumed(t *testing.T, o trial, dir string) (*record.Run, error) {
	t.Helper()
	o.Resume, o.Out = dir, ""
	return do(t, t.Context(), o)
}

// An engine that the user named must run, even when the run is resumed; one of a default list need not.
func TestResumeRemembersNamedEngines(t *testing.T) {
	for _, c := range []struct {
		optional, more bool // more: something else is missing of the run
		want           fault.Kind
	}{{false, false, fault.NoLlamaServer}, {true, false, ""}, {false, true, fault.NoLlamaServer}, {true, true, ""}} {
		synctest.Test(t, func(t *testing.T) {
			b := &telling{scripted: scripted{name: "b"}}
			o := options(t, &scripted{name: "a"}, b)
			o.refuses = func(c record.Cell) error {
				if c.Engine == "a" {
					return fault.New(fault.NoLlamaServer, "get it", "it is not here")
				}
				return nil
			}
			if c.optional {
				o.Optional = func(engine string) bool { return engine == "a" }
			}
			var dir string
			if c.more {
				dir = brokenOff(t, o, &b.scripted, 3)
			} else if r, err := do(t, t.Context(), o); fault.Of(err) != c.want {
				t.Fatalf("%+v: %v", c, err)
			} else {
				dir = r.Dir
			}
			o.Optional = nil
			r, err := resumed(t, o, dir)
			if fault.Of(err) != c.want || (r.Status == record.OK) != (c.want == "") || len(r.Attempts) != 5 {
				t.Errorf("%+v: %v, the run is %s, %d attempts", c, err, r.Status, len(r.Attempts))
			}
		})
	}
}

func TestResume(t *testing.T) {
	for isolation, want := range map[string]string{
		plan.OfLaunch: "1.0, 2.0, 1.1, 2.1, 1.2, 2.2, 1.3, 2.3",
		plan.Reused:   "1.0, 1.1, 1.2, 1.3<4, 2.0, 2.1, 2.2<7, 2.3<7",
		plan.Shared:   "1.0, 1.1, 2.1, 1.2<4, 2.2<4, 1.3<4, 2.3<4",
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &telling{scripted: scripted{name: "a"}}
			o := options(t, e)
			o.Plan.Isolation, o.Plan.Prompts = isolation, plan.Texts("p", "q")
			dir := brokenOff(t, o, &e.scripted, 3)
			r, err := resumed(t, o, dir)
			if err != nil || r.Status != record.OK {
				t.Fatalf("%s: %v, %s", isolation, err, r.Status)
			}
			if got := made(r); got != want {
				t.Errorf("%s: %q, want %q", isolation, got, want)
			}
			if len(r.Cells) != 2 || len(r.Redone) != 1 || len(r.Resumes) != 1 {
				t.Errorf("%s: %d cells, %d attempts repeated, %d resumptions", isolation, len(r.Cells), len(r.Redone),
					len(r.Resumes))
			}
			launches := e.launches
			o.Options = run.Options{Resume: dir}
			if again, err := execute(t.Context(), o); err != nil ||
				again != dir || e.launches != launches {
				t.Errorf("%s: resuming a complete run: %q, %v, %d more launches", isolation, again, err,
					e.launches-launches)
			}
		})
	}
}

// Older versions generated prompts with seed 0 and then wrote the seed of the order into plan.yaml.
func TestResumeKeepsPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, asked := &telling{scripted: scripted{name: "a"}}, map[string]bool{}
		o := options(t, e)
		e.generate = func(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
			asked[r.Prompt] = true
			return e.atOnce(ctx, r, token)
		}
		dir := brokenOff(t, o, &e.scripted, 2)
		o.Open = func(_ context.Context, s *plan.Setup) (run.Parts, error) {
			s.Cells[0].Prompt = "of another seed"
			return o.Parts, nil
		}
		if r, err := resumed(t, o, dir); err != nil || len(asked) != 1 || !asked["p"] || len(r.Attempts) != 4 {
			t.Errorf("%v; %d attempts with %v", err, len(r.Attempts), asked)
		}
	})
}

func TestRetryFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &telling{scripted: scripted{name: "a", do: at(3, crashes)}}
		o := options(t, e)
		r, err := do(t, t.Context(), o)
		if err == nil {
			t.Fatal("nothing failed")
		}
		dir, launches := r.Dir, e.launches
		if _, err := resumed(t, o, dir); fault.Of(err) != fault.Run ||
			!strings.Contains(err.Error(), "--retry-failed") || e.launches != launches {
			t.Errorf("%v; %d more launches, want none", err, e.launches-launches)
		}
		o.RetryFailed = true
		r, err = resumed(t, o, dir)
		if err != nil || e.launches != launches+1 || r.Status != record.OK {
			t.Fatalf("%v; %d launches more, %s", err, e.launches-launches, r.Status)
		}
		if want := "1.0, 1.1, 1.3, 1.2"; made(r) != want || len(r.Redone) != 1 || r.Redone[0].Class != record.Crash {
			t.Errorf("%q, repeated: %+v", made(r), r.Redone)
		}
	})
}

func TestResumeRefusesChangedInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &telling{scripted: scripted{name: "a"}}
		fresh := func() trial {
			o := options(t, e)
			o.Model.SHA256, o.Tool = "abc", record.Tool{Version: "1", SHA256: "x"}
			return o
		}
		dir := brokenOff(t, fresh(), &e.scripted, 3)
		before := check.Read(t, filepath.Join(dir, "journal.jsonl"))
		for say, change := range map[string]func(*trial){
			"the plan differs from that of the run in": func(o *trial) { o.Plan.MaxTokens = 5 },
			"was started by another llmparity":         func(o *trial) { o.Tool.SHA256 = "y" },
			"the model of the run in":                  func(o *trial) { o.Model.SHA256 = "def" },
			"is not a run folder":                      func(o *trial) { o.Resume = t.TempDir() },
		} {
			o := fresh()
			o.Resume = dir
			change(&o)
			launches := e.launches
			_, err := execute(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "\n") ||
				e.launches != launches {
				t.Errorf("%v after %d launches, want one line with %q", err, e.launches-launches, say)
			}
		}
		o := fresh()
		o.Resume, o.Plan.MaxTokens = dir, 5 // as if the user had edited plan.yaml
		path := filepath.Join(dir, "plan.yaml")
		was := check.Read(t, path)
		text, err := o.Plan.YAML()
		check.Err(t, err)
		put := func(text []byte) {
			check.Err(t, os.WriteFile(path, text, 0o644))
		}
		put(text)
		if _, err := execute(t.Context(), o); err == nil ||
			!strings.Contains(err.Error(), "plan.yaml in "+dir+" was changed since the run started") {
			t.Errorf("with another plan.yaml: %v", err)
		}
		put(was)
		after, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
		if err != nil || string(before) != string(after) {
			t.Errorf("the record was changed; %v", err)
		}
		o = fresh()
		o.Tool.SHA256, o.AllowChanged = "y", true
		r, err := resumed(t, o, dir)
		if err != nil || !slices.ContainsFunc(r.Warnings, func(w record.Warning) bool {
			return w.Code == "resumed-elsewhere" && strings.Contains(w.Text, "llmparity")
		}) {
			t.Errorf("%v; %v", err, r.Warnings)
		}
	})
}

func TestResumeRefusesAnotherEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &telling{scripted: scripted{name: "a"}}
		o := options(t, e)
		dir := brokenOff(t, o, &e.scripted, 3)
		e.version = "2"
		r, err := resumed(t, o, dir)
		if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "version: 2, was 1") ||
			r.Status != record.Interrupted {
			t.Errorf("%s, %v", r.Status, err)
		}
		o.AllowChanged = true
		r, err = resumed(t, o, dir)
		reported := 0
		for _, w := range r.Warnings {
			if w.Code == "resumed-elsewhere" && strings.Contains(w.Text, "browser: C/2, was C/1") {
				reported++
			}
		}
		if err != nil || reported != 1 || len(r.Attempts) != 4 {
			t.Errorf("%v; %q; %v", err, made(r), r.Warnings)
		}
	})
}

func TestRunTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &telling{scripted: scripted{name: "a"}} // a launch takes 2 s and more
		o := options(t, e)
		o.Plan.RunTimeout = plan.Duration(6 * time.Second)
		r, err := do(t, t.Context(), o)
		if fault.Of(err) != fault.Run || !strings.Contains(err.Error(), "the run exceeded its time limit of 6s") ||
			!strings.Contains(err.Error(), "--resume") {
			t.Errorf("the run says %v", err)
		}
		cut := r.Attempts[len(r.Attempts)-1]
		if r.Status != record.Interrupted || len(r.Attempts) != 4 && len(r.Attempts) != 3 ||
			cut.Status != record.Interrupted || cut.Class != record.Timeout || e.open.Load() != 0 {
			t.Fatalf("%s; %q; %+v", r.Status, made(r), cut)
		}
		for r.Status == record.Interrupted {
			n := len(r.Attempts)
			if r, err = resumed(t, o, r.Dir); len(r.Attempts) < n {
				t.Fatalf("%v; %q", err, made(r))
			}
		}
		if want := "1.0, 1.1, 1.2, 1.3"; made(r) != want || err != nil {
			t.Errorf("%v; %q", err, made(r))
		}
	})
}

func TestUntilCIStopsWhenIntervalIsNarrow(t *testing.T) {
	for _, isolation := range []string{plan.OfLaunch, plan.Reused, plan.Shared} {
		synctest.Test(t, func(t *testing.T) {
			steady, wild := paced("steady", false), paced("wild", true)
			o := options(t, steady, wild)
			o.Plan.Isolation, o.Plan.Repetitions, o.Plan.UntilCI = isolation, 3, &plan.UntilCI{Width: 5, Most: 20}
			r := whole(t, o)
			n := map[int]int{}
			for _, a := range r.Attempts {
				if a.Counted() {
					n[a.Cell]++
				}
			}
			s, w := r.Stops[1], r.Stops[2]
			if n[1] != 8 || !s.Narrow || s.Repetitions != 8 || s.Look != 1 || s.Confidence != 0.9875 || s.Low == nil ||
				*s.Low != s.Median {
				t.Errorf("%s: steady, %d times: %+v", isolation, n[1], s)
			}
			if n[2] != 20 || w.Narrow || w.Repetitions != 20 || w.Look != 4 || w.Looks != 4 {
				t.Errorf("%s: wild, %d times: %+v", isolation, n[2], w)
			}
			// At 98.75% the interval is the 5th to the 16th of twenty values, of which eleven are 33.3.
			if w.Low == nil || w.Level != 0.95 || w.Confidence != 0.9875 || w.Percent != 5 || *w.Low != w.Median ||
				math.Abs(w.Median-100./3) > 1e-9 || math.Abs(*w.High-1000./21) > 1e-9 {
				t.Errorf("%s: wild: %+v, %g to %g", isolation, w, *w.Low, *w.High)
			}
			for _, a := range r.Attempts {
				_, unloaded := a.Phase(record.Unload)
				if last := a.Repetition == n[a.Cell]; isolation != plan.OfLaunch && !a.Warmup && unloaded != last {
					t.Errorf("%s: repetition %d of %d unloads: %v", isolation, a.Repetition, n[a.Cell], unloaded)
				}
			}
			if steady.open.Load()+wild.open.Load() != 0 {
				t.Error("a session stays open")
			}
		})
	}
}

// A cell whose interval stays too wide says so when its repetitions end, also if the last one fails.
func TestUntilCIThatIsNotReachedIsNoted(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := paced("wild", true)
			generate, measured := e.generate, 0
			e.generate = func(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
				if r.MaxTokens > 1 {
					measured++
				}
				if fails && r.MaxTokens > 1 && measured == 11 { // the tenth repetition; a warm-up launch comes first
					return record.Usage{}, errors.New("no answer")
				}
				return generate(ctx, r, token)
			}
			o := options(t, e)
			o.Plan.Repetitions, o.Plan.UntilCI = 6, &plan.UntilCI{Width: 5, Most: 10}
			var notes []string
			o.Progress = func(e run.Event) {
				if e.Repetition > e.Repetitions {
					t.Errorf("%d of %d", e.Repetition, e.Repetitions)
				}
				if e.Kind == run.Judged {
					notes = append(notes, e.Text)
				}
			}
			r, err := do(t, t.Context(), o)
			if (err != nil) != fails {
				t.Fatal(err)
			}
			stop, want := r.Stops[1], map[bool]int{false: 10, true: 9}[fails]
			if len(notes) != 1 || notes[0] != stop.Unreached("decode") || stop.Repetitions != want ||
				!strings.HasPrefix(notes[0], "until_ci: decode has an interval that reaches ") ||
				!strings.HasSuffix(notes[0], fmt.Sprintf(
					" after %d repetitions, the most that the plan allows; ±5%% was asked for", want)) {
				t.Errorf("fails %v: %q, %+v", fails, notes, stop)
			}
		})
	}
}

// paced returns an engine with a rate that is steady or varies.
func paced(name string, wild bool) *scripted {
	e, asked := &scripted{name: name}, 0
	e.generate = func(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
		step := 10 * time.Millisecond
		if r.MaxTokens > 1 { // measured
			asked++
		}
		if wild && asked%2 == 0 {
			step *= 3
		} else if wild {
			step += time.Duration(asked) * time.Millisecond
		}
		var first, last time.Time
		u, err := e.atOnce(ctx, r, func(t record.Token) {
			time.Sleep(step)
			last = time.Now()
			if t.At = last; first.IsZero() {
				first = last
			}
			token(t)
		})
		u.Spans = []record.Span{{Name: record.Decode, Begin: first, End: last}}
		return u, err
	}
	return e
}

func TestUntilCIResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := paced("steady", false)
		o := options(t, e)
		o.Plan.Repetitions, o.Plan.UntilCI = 3, &plan.UntilCI{Width: 5, Most: 20}
		r, err := resumed(t, o, brokenOff(t, o, e, 6)) // including the warm-up: four repetitions are made
		if err != nil || len(r.Attempts) != 9 || r.Stops[1].Repetitions != 8 || !r.Stops[1].Narrow {
			t.Errorf("%v; %q, %+v", err, made(r), r.Stops)
		}
	})
}

// No launch is repeated, and each text is scored once.
func TestInterruptedScoringResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		a, b := opinionated("a", 1, 2, 3, 4), opinionated("b", 1, 2, 4, 8)
		b.score = func(ctx context.Context, _ engine.Forced) error { return interrupts(cancel)(ctx) }
		o := options(t, a, b)
		o.Plan.Check, o.Plan.TextOf = new(false), "b"
		dir, err := execute(ctx, o)
		if fault.Of(err) != fault.Interrupted || len(a.asked) != 1 || len(b.asked) != 1 {
			t.Fatalf("%v; %d and %d texts", err, len(a.asked), len(b.asked))
		}
		unended(t, dir)
		b.score = nil
		launches := a.launches + b.launches
		r, err := resumed(t, o, dir)
		if err != nil || len(a.asked) != 1 || len(b.asked) != 2 || a.launches+b.launches != launches+1 ||
			len(r.Attempts) != 8 {
			t.Errorf("%v; %d and %d texts, %d launches more, %d attempts", err, len(a.asked), len(b.asked),
				a.launches+b.launches-launches, len(r.Attempts))
		}
	})
}

// unended removes the run's end from its journal, as a kill would.
func unended(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "journal.jsonl")
	text := check.Read(t, path)
	lines := strings.SplitAfter(string(text), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, `"done":`) })
	check.Err(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644))
}

// The plan in a run's folder has defaults that nobody requested. Cells of a resumed run have what the others have.
func TestResumedCellsHaveTheFirstRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		e := &scripted{name: "a"}
		e.do = at(2, interrupts(cancel))
		o := options(t, e)
		o.Plan.Contexts, o.Plan.Context, o.Plan.Order = []int{16, 32}, 0, plan.Grouped // the second is prepared last
		first, err := o.options()
		check.Err(t, err)
		first.Plan.Threads, first.Plan.DType = 1, "f32" // as the command completes it
		dir, err := run.Do(ctx, first)
		if fault.Of(err) != fault.Interrupted {
			t.Fatal(err)
		}
		o.Plan.Threads, o.Plan.DType, e.do = 1, "f32", nil
		r, err := resumed(t, o, dir)
		if err != nil || len(r.Cells) != 2 {
			t.Fatalf("%v, %d cells", err, len(r.Cells))
		}
		for _, c := range r.Cells {
			if c.Threads != 0 || c.DType != "" || c.Isolation == "" {
				t.Errorf("cell %d: %d threads, dtype %q, %+v", c.ID, c.Threads, c.DType, c)
			}
		}
	})
}
