package watch

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"llmparity/internal/fault"
)

// Signals handles signals while a command runs. In a terminal the command also gets SIGINT and decides what to do; a
// second one, or any other signal, ends it. One more kills it. The same signal soon after counts once, unless it was
// typed.
type Signals struct {
	ctx     context.Context
	one     time.Duration // time within which equal signals count once
	cancel  context.CancelCauseFunc
	come    chan os.Signal
	started chan *Command
	done    chan struct{}
}

// TakeSignals takes over signals from the program, which would end at the second one.
func TakeSignals(ctx context.Context, one time.Duration, say func(string)) *Signals {
	s := &Signals{one: one, come: make(chan os.Signal, 4), started: make(chan *Command, 1), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	signal.Notify(s.come, os.Interrupt, syscall.SIGTERM)
	go s.follow(say)
	return s
}

// Context ends with the signal that ends the watching; its cause carries the exit code.
func (s *Signals) Context() context.Context { return s.ctx }

func (s *Signals) follow(say func(string)) {
	defer close(s.done)
	var c *Command
	reported := false // c is known
	var last os.Signal
	var at time.Time
	for patient := true; ; {
		select {
		case c = <-s.started:
			reported = true
			continue
		case got, open := <-s.come:
			if open && !reported { // it is just starting: the signal may be for it
				c, reported = <-s.started, true
			}
			typed := got == os.Interrupt && OfTerminal()
			again := got == last && time.Since(at) <= s.one && !typed
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
			case patient && c != nil && OfTerminal():
				patient = false
				say("interrupted: the command decides what to do; interrupt again to end it")
				c.Interrupted()
			default:
				s.cancel(fault.New(fault.Interrupted, "", "interrupted"))
			}
		}
	}
}

// Of sets the command that the signals are for; nil: it could not be started.
func (s *Signals) Of(c *Command) { s.started <- c }

// Close restores signal handling.
func (s *Signals) Close() {
	signal.Stop(s.come)
	close(s.come)
	<-s.done
	s.cancel(nil)
}
