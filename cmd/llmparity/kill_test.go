//go:build unix

package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"llmparity/internal/host/child"
	"llmparity/internal/record"
)

// killed is a plan of both engines with mostly short cells, so that kills hit different phases.
const killed = `name: killed
engines: [llamacpp]
model: tiny
input_lengths: [4, 8]
output_lengths: [4, 8]
concurrency: [1, 2]
temperature: 0
warmup: {launches: 0, tokens: 1}
repetitions: 2
isolation: shared
parity: false
timeout: 3m
include:
  - {engine: webllm, input_length: 4, output_length: 4, concurrency: 1}
`

// A run that is killed at random instants and resumed ends with the same cells as an undisturbed one: none lost, none
// repeated.
func TestKilledRunsResume(t *testing.T) {
	racedTest(t)
	t.Parallel()
	begin := time.Now()
	whole := planned(t)
	well(t, whole)
	took := time.Since(begin)
	want := repetitions(t, filepath.Join(whole.Dir, "results", "latest"))
	if len(want) != 18 {
		t.Fatalf("undisturbed there are %d repetitions: %v", len(want), want)
	}
	random := rand.New(rand.NewPCG(0, 1))
	cmd := planned(t)
	latest := filepath.Join(cmd.Dir, "results", "latest")
	safe := map[int]kept{}
	for kills := range 3 {
		// The next kill is sooner, for what is left takes less time.
		at := time.Duration(0.9 * random.Float64() * float64(took) / float64(1+2*kills))
		ended := killAfter(t, cmd, at)
		_, err := os.Stat(filepath.Join(latest, "run.json"))
		t.Logf("kill %d after %s of some %s: ended before %v, a record %v", kills+1, at.Round(time.Millisecond),
			took.Round(time.Millisecond), ended, err == nil)
		if err != nil { // it had not begun to record: it is begun anew
			cmd = resumed(cmd, "run", "-q", "plan.yaml")
			continue
		}
		safe = nothingLost(t, latest, safe)
		cmd = resumed(cmd, "run", "-q", "--resume", latest)
	}
	well(t, cmd)
	nothingLost(t, latest, safe)
	if got := repetitions(t, latest); !maps.Equal(got, want) {
		t.Errorf("%v\nundisturbed %v", got, want)
	}
	if left := temporary(t, cmd.Dir); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	if runs, err := filepath.Glob(filepath.Join(cmd.Dir, "results", "killed-*")); err != nil || len(runs) != 1 {
		t.Errorf("%v, %v", runs, err)
	}
}

// planned is a run of the plan.
func planned(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := program(t, "run", "-q", "plan.yaml")
	put(t, cmd.Dir, "plan.yaml", killed)
	return cmd
}

// killAfter starts a run and kills it unless it ends before. Its processes end with it.
func killAfter(t *testing.T, cmd *exec.Cmd, after time.Duration) (ended bool) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	check(t, cmd.Start())
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its exit code is what counts
		close(over)
	}()
	groups := map[int]bool{}
	select {
	case <-over:
	case <-time.After(after):
		groups = groupsOf(t, cmd.Process.Pid)
		if err := cmd.Process.Kill(); err != nil {
			t.Log(err) // it ended meanwhile
		}
		<-over
	}
	if ended = cmd.ProcessState.Exited(); ended && cmd.ProcessState.ExitCode() != 0 {
		t.Fatalf("exit code %d\n%s", cmd.ProcessState.ExitCode(), &said)
	}
	waitFor(t, "its processes to end",
		func() bool { return len(child.Tagged(cmd.Process.Pid))+len(members(groups, cmd.Dir)) == 0 })
	return ended
}

// kept is what a record has of a successful attempt.
type kept struct{ cell, repetition, samples, totals, tokens int }

// nothingLost checks that a record still has everything that was safe before.
func nothingLost(t *testing.T, dir string, before map[int]kept) map[int]kept {
	t.Helper()
	now := map[int]kept{}
	for _, a := range opened(t, dir).Attempts {
		k := kept{a.Cell, a.Repetition, len(a.Samples), len(a.Totals), 0}
		for _, q := range a.Requests {
			k.tokens += len(q.Tokens)
		}
		if a.Status == record.OK {
			now[a.ID] = k
		}
	}
	for id, was := range before {
		if now[id] != was {
			t.Errorf("attempt %d was %+v and is %+v", id, was, now[id])
		}
	}
	return now
}

// repetitions counts successful launches by cell and repetition.
func repetitions(t *testing.T, dir string) map[string]int {
	t.Helper()
	r := opened(t, dir)
	if r.Status != record.OK {
		t.Errorf("%s: the run is %s", dir, r.Status)
	}
	out := map[string]int{}
	for _, a := range r.Attempts {
		if c := r.CellByID(a.Cell); a.Counted() {
			out[fmt.Sprintf("%d %s %d→%d, %d at once, repetition %d", c.ID, c.Engine, c.InputTokens, c.MaxTokens,
				c.Traffic.Concurrency, a.Repetition)]++
		}
	}
	for what, n := range out {
		if n != 1 {
			t.Errorf("%s is there %d times", what, n)
		}
	}
	return out
}
