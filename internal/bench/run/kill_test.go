//go:build unix

package run_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// killedRun names the folder of the run that this test binary executes until it is killed.
const killedRun = "RUN_TEST_KILLED"

func TestMain(m *testing.M) {
	out := os.Getenv(killedRun)
	if out == "" {
		os.Exit(m.Run())
	}
	o := sweep()
	o.Out = out
	if _, err := os.Stat(filepath.Join(out, "latest")); err == nil {
		o.Resume = filepath.Join(out, "latest")
	}
	if _, err := execute(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sweep is a run of two setups with sources and slow tokens.
func sweep() trial {
	p := plan.Plan{Name: "sweep", Model: "m", Engines: []string{"a"}, Prompts: plan.Texts("p", "q", "r"), MaxTokens: 4,
		Context: 16,
		Warmup:  plan.Warmup{Launches: 1, Tokens: 1}, Repetitions: 3, Timeout: plan.Duration(time.Minute),
		Isolation: plan.Shared, Seed: 3,
		Order: plan.Shuffled}
	p.ThreadCounts = []int{1, 2}
	return trial{Plan: p, Parts: run.Parts{Engines: []engine.Engine{slow()}, Model: models.Model{
		Model: record.Model{Name: "m", SHA256: "abc"}}}}
}

// slow is an engine that takes real time.
func slow() *scripted {
	e := &scripted{name: "a", caps: &engine.Caps{Isolation: record.OfLaunch}, opened: withRSS(still)}
	e.generate = func(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
		var err error
		u, _ := e.atOnce(ctx, r, func(t record.Token) {
			if err == nil {
				err = passes(ctx, 3*time.Millisecond)
			}
			t.At = time.Now()
			token(t)
		})
		return u, err
	}
	return e
}

// SIGKILL at any instant costs only the attempt in progress; the resumed run has the same attempts as an undisturbed
// one.
func TestKilledRunResumes(t *testing.T) {
	undisturbed, err := execute(t.Context(), withOut(sweep(), t.TempDir()))
	check.Err(t, err)
	want := counted(t, undisturbed)
	if len(want) != 2*(3*3+1) {
		t.Fatalf("%d attempts", len(want))
	}
	for i := range 5 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			got := disturbed(t, 3)
			for key := range want {
				if _, there := got[key]; !there {
					t.Errorf("%s is missing", key)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d attempts count, want %d", len(got), len(want))
			}
		})
	}
}

// disturbed kills and resumes a run several times, checks that nothing safe is lost, and returns the final attempts.
func disturbed(t *testing.T, times int) (safe map[string]rows) {
	t.Helper()
	out := t.TempDir()
	for kills := 0; ; kills++ {
		after := time.Duration(-1)
		if kills < times {
			after = time.Duration(rand.IntN(1200)) * time.Millisecond
		}
		ended := killed(t, out, after)
		if _, err := os.Stat(filepath.Join(out, "latest")); err != nil {
			continue // before there was a folder
		}
		now := counted(t, filepath.Join(out, "latest"))
		for key, was := range safe {
			if is, there := now[key]; !there || is != was {
				t.Errorf("%s had %+v when the run was killed after %s, now %+v", key, was, after, is)
			}
		}
		if safe = now; ended {
			return safe
		}
	}
}

func withOut(o trial, out string) trial {
	o.Out = out
	return o
}

// killed executes the run in a process and kills it after a while; ended reports that the run ended first.
func killed(t *testing.T, out string, after time.Duration) (ended bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), killedRun+"="+out)
	c.Stderr = os.Stderr
	check.Err(t, c.Start())
	if after >= 0 {
		time.AfterFunc(after, func() { _ = c.Process.Kill() }) // it may have ended
	}
	err := c.Wait()
	if after < 0 && err != nil {
		t.Fatalf("run without a kill: %v", err)
	}
	return err == nil
}

// rows counts what the record has of an attempt.
type rows struct{ samples, totals, tokens, attempt int }

// counted returns the rows of each successful attempt, and checks that there are no duplicates.
func counted(t *testing.T, dir string) map[string]rows {
	t.Helper()
	r, err := record.Open(dir)
	check.Err(t, err)
	out := map[string]rows{}
	for _, a := range r.Attempts {
		if a.Status != record.OK {
			continue
		}
		key := fmt.Sprintf("cell %d, repetition %d", a.Cell, a.Repetition)
		if _, twice := out[key]; twice {
			t.Errorf("%s is duplicated", key)
		}
		n := rows{samples: len(a.Samples), totals: len(a.Totals), attempt: a.ID}
		for _, q := range a.Requests {
			n.tokens += len(q.Tokens)
		}
		if want := 4; n.tokens < want {
			t.Errorf("%s has %d tokens", key, n.tokens)
		}
		out[key] = n
	}
	return out
}
