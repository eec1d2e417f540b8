package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/watch"
)

// signals are those that come while a command runs. In a terminal the command gets SIGINT as we do, and decides what it
// does about it, as it would without us; a second one ends it, and so does any other signal at once. One more kills it.
// The same signal again soon after counts as one, unless somebody typed it.
type signals struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	come    chan os.Signal
	started chan *watch.Command
	done    chan struct{}
}

// takeSignals takes the signals from the program, which would end at the second one.
func takeSignals(ctx context.Context, say func(string)) *signals {
	s := &signals{come: make(chan os.Signal, 4), started: make(chan *watch.Command, 1), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	signal.Notify(s.come, os.Interrupt, syscall.SIGTERM)
	go s.follow(say)
	return s
}

func (s *signals) follow(say func(string)) {
	defer close(s.done)
	var c *watch.Command
	reported := false // of it
	var last os.Signal
	var at time.Time
	for patient := true; ; {
		select {
		case c = <-s.started:
			reported = true
			continue
		case got, open := <-s.come:
			if open && !reported { // it is just being started: the signal may be for it
				c, reported = <-s.started, true
			}
			typed := got == os.Interrupt && watch.OfTerminal()
			again := got == last && time.Since(at) <= oneSignal && !typed
			if !again {
				last, at = got, time.Now()
			}
			switch {
			case !open:
				return
			case again:
			case s.ctx.Err() != nil:
				if c != nil {
					c.Hurry()
				}
			case got == syscall.SIGTERM:
				s.cancel(fault.New(fault.Terminated, "", "terminated"))
			case patient && c != nil && watch.OfTerminal():
				patient = false
				say("interrupted: the command does with it what it does, and is watched on; once more ends it")
				c.Interrupted()
			default:
				s.cancel(fault.New(fault.Interrupted, "", "interrupted"))
			}
		}
	}
}

// of says which command the signals are for; nil: it could not be started.
func (s *signals) of(c *watch.Command) { s.started <- c }

func (s *signals) close() {
	signal.Stop(s.come)
	close(s.come)
	<-s.done
	s.cancel(nil)
}
