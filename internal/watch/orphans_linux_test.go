package watch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
	"llmparity/internal/watch"
)

// Orphaned background processes are watched until they end, even in another session or environment.
func TestOrphansAreWatched(t *testing.T) {
	for _, args := range [][]string{{"sh", "-c", "sleep 0.4 &"}, {"setsid", "-f", "sleep", "0.4"},
		{"sh", "-c", "env -i setsid -f sleep 0.4; exit 3"}} {
		c := command(t, args...)
		s := run(t, watch.Options{Command: c, Interval: 50 * time.Millisecond})
		n := 0
		for _, r := range s.rows {
			if r["name"] == "sleep" {
				n++
			}
		}
		if code, _ := c.Exit(); s.err != nil || n < 2 || code != 3*strings.Count(args[len(args)-1], "exit") {
			t.Errorf("%v: code %d, %v, names %v, %d rows of sleep", args, code, s.err, s.names(), n)
		}
	}
}

func TestOrphansEndWithWatching(t *testing.T) {
	c := command(t, "setsid", "-f", "sleep", "609")
	ctx, cancel := context.WithCancelCause(t.Context())
	var said []string
	_, err := watch.Run(ctx, watch.Options{Command: c, Interval: 20 * time.Millisecond,
		Say: func(line string) { said = append(said, line) },
		Draw: func(p watch.Point) {
			if p.At > 200*time.Millisecond {
				cancel(fault.New(fault.Interrupted, "", "interrupted"))
			}
		}})
	if fault.Of(err) != fault.Interrupted {
		t.Errorf("err = %v", err)
	}
	var pid int // of the orphan, which comes last
	for _, line := range said {
		_, _ = fmt.Sscanf(line, "watching process %d", &pid)
	}
	if pid == c.PID() {
		t.Fatalf("said %q", said)
	}
	if p, err := proc.Look(pid); !errors.Is(err, sample.ErrGone) {
		t.Errorf("%+v still runs (%v)", p, err)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
