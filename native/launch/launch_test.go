package launch_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/native/launch"
)

func TestMain(m *testing.M) { childtest.Main(m) }

// started runs a shell script, sampled.
func started(t *testing.T, script string) (*launch.Program, *enginetest.Probe) {
	t.Helper()
	probe := &enginetest.Probe{}
	p, err := launch.Start(t.Context(), exec.Command("sh", "-c", script), launch.Options{Name: "Mouse",
		Log: probe.Log("mouse"), Keep: 1 << 10, Role: "server", Attach: probe.Attach})
	check.Err(t, err)
	t.Cleanup(func() { p.End(0) })
	return p, probe
}

func never(context.Context) (answers, ready bool) { return false, false }

func TestSilentProgramIsWorthAnotherStart(t *testing.T) {
	p, _ := started(t, "echo loading >&2; sleep 100")
	_, _, err := p.Await(t.Context(), 300*time.Millisecond, never)
	var failed *engine.NotStarted
	if !errors.As(err, &failed) || failed.What != "Mouse did not answer within 0.3 s" ||
		!strings.Contains(failed.Report, "loading") {
		t.Errorf("%v: %+v", err, failed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.Await(ctx, time.Minute, never); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAwaitEndsWithProgram(t *testing.T) {
	p, _ := started(t, "echo 'failed to allocate'; exit 3")
	_, _, err := p.Await(t.Context(), time.Minute, func(ctx context.Context) (answers, ready bool) {
		<-ctx.Done() // another process accepts the connection and does not answer
		return false, false
	})
	if !errors.Is(err, launch.ErrEnded) {
		t.Errorf("%v", err)
	}
	if err := p.Crashed(p.Tail.Lines(3)...); engine.ClassOf(err) != record.OOM ||
		err.Error() != "Mouse crashed (exit status 3); last output: failed to allocate" {
		t.Errorf("%v of class %s", err, engine.ClassOf(err))
	}
}

func TestAwaitReturnsTimesOfAnswers(t *testing.T) {
	p, probe := started(t, "sleep 100")
	asked := 0
	first, ready, err := p.Await(t.Context(), time.Minute, func(context.Context) (bool, bool) {
		asked++
		return asked > 1, asked > 2
	})
	if err != nil || asked != 3 || !p.Begun.Before(first) || !first.Before(ready) {
		t.Errorf("begun %v, answered %v, ready %v after %d: %v", p.Begun, first, ready, asked, err)
	}
	if len(probe.Attached()) == 0 {
		t.Error("nothing is sampled")
	}
	source := probe.Attached()[0]
	if !p.Also(source, probe.Attach) {
		t.Error("a running program refuses another source")
	}
	p.Look()
	p.End(0)
	if _, closed := probe.Logged("mouse"); !closed || len(probe.Attached()) != 0 || p.Also(source, probe.Attach) {
		t.Errorf("after End: log closed: %v; %d sources", closed, len(probe.Attached()))
	}
}
