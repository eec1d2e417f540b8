package watch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/bench/watch"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
)

// Orphaned background processes are watched until they end, even in another session or environment.
func TestOrphansAreWatched(t *testing.T) {
	for _, args := range [][]string{{"sh", "-c", "exec 3<&0; cat <&3 &"}, {"setsid", "-f", "cat"},
		{"sh", "-c", "env -i setsid -f cat; exit 3"}} {
		in, end := pipe(t)
		c, err := watch.Start(args, in, io.Discard, io.Discard)
		check.Err(t, err)
		alone := 0 // samples of the orphan, after the command's end
		s := run(t, watch.Options{Command: c, Draw: func(watch.Point) {
			select {
			case <-c.Done():
				if alone++; alone == 3 {
					end.Close()
				}
			default:
			}
		}})
		n := 0
		for _, r := range s.rows {
			if r["name"] == "cat" {
				n++
			}
		}
		if code, _ := c.Exit(); s.err != nil || n < 2 || code != 3*strings.Count(args[len(args)-1], "exit 3") {
			t.Errorf("%v: code %d, %v, names %v, %d rows of cat", args, code, s.err, s.names(), n)
		}
	}
}

func TestOrphansEndWithWatching(t *testing.T) {
	c := command(t, "setsid", "-f", "sleep", "609")
	ctx, cancel := context.WithCancelCause(t.Context())
	pid := c.PID() // then the orphan's, which comes last
	_, err := watch.Run(ctx, watch.Options{Command: c, Interval: 20 * time.Millisecond,
		Say: func(line string) { _, _ = fmt.Sscanf(line, "watching process %d", &pid) },
		Draw: func(watch.Point) {
			if pid != c.PID() {
				cancel(fault.New(fault.Interrupted, "", "interrupted"))
			}
		}})
	if fault.Of(err) != fault.Interrupted {
		t.Errorf("err = %v", err)
	}
	if p, err := proc.Look(pid); !errors.Is(err, sample.ErrGone) {
		t.Errorf("%+v still runs (%v)", p, err)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
