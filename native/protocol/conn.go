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

// Limits of what an engine may send.
const (
	maxLine   = 4 << 20
	maxStages = 100      // of a load
	maxText   = 16 << 20 // of a generation
)

// grace is how long an engine may take to end after its input has ended, or to end a cancelled request.
const grace = 2 * time.Second

// errClosed is returned if the engine was ended during a call or before it.
var errClosed = engine.Fail(record.Cancelled, "the session is closed")

// seeProtocol is the advice for an engine that violates the protocol.
const seeProtocol = "see docs/howto/add-an-engine.md"

// conn is a running engine and the conversation with it.
type conn struct {
	name    string
	silence time.Duration
	*launch.Program
	in, out *os.File
	clock   clock

	quit chan struct{} // closed when broken is set
	gone chan struct{} // closed when no more lines come, after quit

	mu     sync.Mutex
	call   *call // current request, or a cancelled one that has not ended
	id     int   // of the latest request
	caps   caps  // as reported
	broken error // why no more requests are possible

	lines int // read so far, by the reader
	once  sync.Once
}

// call is a request to the engine.
type call struct {
	id    int
	op    string
	max   int // tokens that it may send
	sent  time.Time
	got   chan received
	ended chan struct{} // closed with its last line
	given chan struct{} // closed when it is cancelled

	tokens, stages, text int // received
}

type received struct {
	message
	at time.Time // when it was read; the same for all lines of one read
}

// ask sends a request and returns its last message; on receives those before it. An error of on is a protocol
// violation and ends the engine.
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
			c.fail(c.wrong(op, record.Hung, fmt.Sprintf("%s was silent for %s after %s; last output: %s",
				c.name, c.silence, op, lastWords(c.Tail.Lines(200)))))
			<-c.gone
			return r, k, c.why()
		case <-c.gone:
			select {
			case r = <-k.got: // received before the end
			default:
				return r, k, c.why()
			}
		}
		quiet.Reset(c.silence)
		switch {
		case ctx.Err() != nil: // discard what was read ahead
			c.giveUp(k)
			return r, k, ctx.Err()
		case r.Event == evError:
			return r, k, c.refused(r.message)
		case r.Event == evDone:
			return r, k, nil
		}
		if err := on(k, r); err != nil {
			err = c.wrong(op, record.BadOutput, fmt.Sprintf("%s violates the protocol: %v", c.name, err))
			c.fail(err)
			return r, k, err
		}
	}
}

// begin waits for a cancelled request to end, and starts another.
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
				fmt.Sprintf("%s did not end a cancelled %s within %s; it must read its input during a request",
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
	_ = c.in.SetWriteDeadline(time.Now().Add(within)) // pipes support deadlines
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = c.in.SetWriteDeadline(time.Now())
	})
	_, err = c.in.Write(append(line, '\n'))
	if !stop() {
		<-stopped // so that its deadline does not apply to the next line
	}
	return err
}

// unsent returns why a request could not be sent. After half a line the engine is unusable.
func (c *conn) unsent(ctx context.Context, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = c.wrong("", record.Hung, fmt.Sprintf("%s did not read its input for %s", c.name, c.silence))
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		c.fail(err)
		return err
	}
	select {
	case <-c.gone: // the engine ended
	case <-time.After(grace):
		c.fail(c.wrong("", record.BadOutput, c.name+" closed its standard input, where requests arrive"))
		<-c.gone
	}
	return c.why()
}

// giveUp cancels a call. Further answers to it are ignored.
func (c *conn) giveUp(k *call) {
	close(k.given)
	c.mu.Lock()
	c.id++
	id := c.id
	c.mu.Unlock()
	// the next call waits until this one has ended
	_ = c.send(context.Background(), plainRequest{ID: id, Op: opCancel, Of: k.id}, grace)
}

// idle waits, up to grace, for a cancelled call to end; false means that it has not.
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

// refused is an error that the engine reported.
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

// wrong makes a failure. If hello fails, the engine's author must fix it first.
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

// fail ends the engine for a reason; the first reason counts.
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
