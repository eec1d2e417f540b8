package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/launch"
)

// What an engine may send without being ended for it.
const (
	maxLine   = 4 << 20
	maxStages = 100      // of a load
	maxText   = 16 << 20 // of a generation
)

// grace is how long an engine may take to end once its input has, or to end a request that was given up.
const grace = 2 * time.Second

// errClosed is a call whose engine was ended under it, or long before it.
var errClosed = engine.Fail(record.Cancelled, "the session is closed")

// seeProtocol is what to do about an engine that breaks the protocol.
const seeProtocol = "see docs/howto/add-an-engine.md"

// conn is a running engine, and what is said to it and by it.
type conn struct {
	name    string
	silence time.Duration
	*launch.Program
	in, out *os.File
	clock   clock

	quit chan struct{} // closed when broken is set
	gone chan struct{} // closed once nothing comes any more, which is after quit

	mu     sync.Mutex
	call   *call // that goes on, or was given up and has not ended
	id     int   // of the last request
	caps   caps  // that it has told of
	broken error // why nothing can be asked any more

	lines int // read so far; the reader's own
	once  sync.Once
}

// call is a request that the engine was given.
type call struct {
	id    int
	op    string
	max   int // tokens that it may send
	sent  time.Time
	got   chan received
	ended chan struct{} // closed with its last line
	given chan struct{} // closed when it is given up

	tokens, stages, text int // that came
}

type received struct {
	message
	at time.Time // it was read; those that one read brought have the same
}

// ask sends a request and gives its last message; on gets those before it. An error of on ends the engine: it is a
// breach.
func (c *conn) ask(ctx context.Context, op string, max int, request func(id int) any, on func(*call, received) error) (
	received, *call, error) {
	k, err := c.begin(ctx, op, max)
	if err != nil {
		return received{}, nil, err
	}
	k.sent = time.Now()
	if err := c.send(ctx, request(k.id), c.silence); err != nil {
		return received{}, k, c.unsent(ctx, err)
	}
	quiet := time.NewTimer(c.silence)
	defer quiet.Stop()
	for {
		var r received
		select {
		case <-ctx.Done():
			c.giveUp(k)
			return r, k, ctx.Err()
		case r = <-k.got:
		case <-quiet.C:
			c.fail(c.wrong(op, record.Hung, fmt.Sprintf("%s said nothing for %s in answer to %s; its last words: %s",
				c.name, c.silence, op, lastWords(c.Tail.Lines(200)))))
			<-c.gone
			return r, k, c.why()
		case <-c.gone:
			select {
			case r = <-k.got: // what it said before
			default:
				return r, k, c.why()
			}
		}
		quiet.Reset(c.silence)
		switch {
		case ctx.Err() != nil: // what was read ahead is not told any more
			c.giveUp(k)
			return r, k, ctx.Err()
		case r.Event == evError:
			return r, k, c.refused(r.message)
		case r.Event == evDone:
			return r, k, nil
		}
		if err := on(k, r); err != nil {
			err = c.wrong(op, record.BadOutput, fmt.Sprintf("%s breaks the protocol: %v", c.name, err))
			c.fail(err)
			return r, k, err
		}
	}
}

// begin waits for a request that was given up, and makes another.
func (c *conn) begin(ctx context.Context, op string, max int) (*call, error) {
	limit := time.NewTimer(c.silence)
	defer limit.Stop()
	for {
		c.mu.Lock()
		if c.broken != nil {
			defer c.mu.Unlock()
			return nil, c.broken
		}
		before := c.call
		if before == nil {
			c.id++
			c.call = &call{id: c.id, op: op, max: max,
				got: make(chan received, 64), ended: make(chan struct{}), given: make(chan struct{})}
			defer c.mu.Unlock()
			return c.call, nil
		}
		c.mu.Unlock()
		select {
		case <-before.ended:
		case <-c.gone:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit.C:
			c.fail(c.wrong(op, record.Hung,
				fmt.Sprintf("%s did not end a %s that was cancelled, %s ago; it must read its input meanwhile",
					c.name, before.op, c.silence)))
		}
	}
}

// send writes a line.
func (c *conn) send(ctx context.Context, request any, within time.Duration) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	_ = c.in.SetWriteDeadline(time.Now().Add(within)) // a pipe has deadlines
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = c.in.SetWriteDeadline(time.Now())
	})
	_, err = c.in.Write(append(line, '\n'))
	if !stop() {
		<-stopped // its deadline must not become that of the next line
	}
	return err
}

// unsent says why a request could not be handed over. Half a line is no request: the engine is of no use after it.
func (c *conn) unsent(ctx context.Context, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = c.wrong("", record.Hung, fmt.Sprintf("%s has not read its input for %s", c.name, c.silence))
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		c.fail(err)
		return err
	}
	select {
	case <-c.gone: // it ended
	case <-time.After(grace):
		c.fail(c.wrong("", record.BadOutput, c.name+" has closed its standard input, by which it is asked"))
		<-c.gone
	}
	return c.why()
}

// giveUp cancels a call. The engine may go on with it for a while, which nobody hears.
func (c *conn) giveUp(k *call) {
	close(k.given)
	c.mu.Lock()
	c.id++
	id := c.id
	c.mu.Unlock()
	// whoever asks next waits for the call's end
	_ = c.send(context.Background(), plainRequest{ID: id, Op: opCancel, Of: k.id}, grace)
}

// idle waits for a call that was given up, for a while; false tells that it still goes on.
func (c *conn) idle(ctx context.Context) bool {
	c.mu.Lock()
	k := c.call
	c.mu.Unlock()
	if k == nil {
		return true
	}
	select {
	case <-k.ended:
		return true
	case <-c.gone:
	case <-ctx.Done():
	case <-time.After(grace):
	}
	return false
}

func (c *conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// refused is an error that the engine told.
func (c *conn) refused(m message) error {
	text := fmt.Sprintf("%s: %s", c.name, cut(m.Message, 400))
	switch m.Class {
	case "oom":
		return &engine.Failure{Class: record.OOM, Err: errors.New(fault.OneLine(text))}
	case "bad-model":
		return engine.SetUp(fault.New(fault.BadModel, "name another model or engine", "%s", text))
	case "prompt-too-long":
		return engine.TooLong("%s", text)
	}
	return &engine.Failure{Class: record.Other, Err: errors.New(fault.OneLine(text))}
}

// wrong is a failure; in an engine that does not even say hello right its author must mend something first.
func (c *conn) wrong(op string, class record.Class, text string) error {
	if op == opHello {
		return &engine.Failure{Class: class, Err: fault.New(fault.BadProtocol, seeProtocol, "%s", text)}
	}
	return &engine.Failure{Class: class, Err: errors.New(fault.OneLine(text))}
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// fail ends the engine for a reason; the first one counts.
func (c *conn) fail(err error) {
	c.spoil(err)
	c.Kill()
}

func (c *conn) spoil(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
		close(c.quit)
	}
}
