package protocol

import (
	"errors"
	"fmt"
	"time"

	"llmparity/internal/record"
	"llmparity/native/wire"
)

// read reads the engine's lines until the end.
func (c *conn) read() {
	defer close(c.gone)
	go func() {
		<-c.Done()
		_ = c.out.SetReadDeadline(time.Now().Add(time.Second)) // a descendant may still have the other end
	}()
	lines := wire.NewLines(c.out)
	lines.Max = maxLine
	for {
		line, at, err := lines.Next()
		switch {
		case errors.Is(err, wire.ErrTooLong):
			c.lines++
			c.fail(c.breach(fmt.Sprintf("longer than %d MiB", maxLine>>20), nil))
			return
		case err != nil: // ignores an incomplete last line
			c.fail(c.ended())
			return
		}
		if err := c.take(line, at); err != nil {
			c.fail(err)
			return
		}
	}
}

// take passes a line to the call that waits for it.
func (c *conn) take(line []byte, at time.Time) error {
	c.lines++
	c.mu.Lock()
	now := c.call
	c.mu.Unlock()
	m, err := parse(line)
	if err == nil {
		err = now.fits(m)
	}
	if err != nil {
		return c.breach(err.Error(), line)
	}
	select {
	case <-now.given: // cancelled
	case <-c.quit:
	case now.got <- received{m, at}:
	}
	if m.last() {
		c.mu.Lock()
		c.call = nil
		c.mu.Unlock()
		close(now.ended)
	}
	return nil
}

// fits returns why a message does not answer the call, which may be nil.
func (k *call) fits(m message) error {
	switch {
	case k == nil:
		return fmt.Errorf("answer to request %d, but none is running", m.ID)
	case m.ID != k.id:
		return fmt.Errorf("answer to request %d, but request %d (%s) is running", m.ID, k.id, k.op)
	case m.Event == evToken && k.op != opGenerate && k.op != opScore, m.Event == evStage && k.op != opLoad:
		return fmt.Errorf("%s in answer to %s", m.Event, k.op)
	case m.Event == evToken:
		k.tokens++
		k.text += len(m.Text)
	case m.Event == evStage:
		k.stages++
	}
	switch {
	case k.tokens > k.max:
		return fmt.Errorf("token %d of a generation of %d", k.tokens, k.max)
	case k.text > maxText:
		return fmt.Errorf("text longer than %d MiB", maxText>>20)
	case k.stages > maxStages:
		return fmt.Errorf("more than %d stages", maxStages)
	}
	return nil
}

// breach is the error for an invalid line.
func (c *conn) breach(what string, line []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	op, id := "", 0
	if c.call != nil {
		op, id = c.call.op, c.call.id
	}
	said := ""
	if line != nil {
		said = fmt.Sprintf("; the line is %q", cut(string(line), 80))
	}
	text := fmt.Sprintf("%s violates the protocol in line %d of its output: %s%s", c.name, c.lines, what, said)
	if op != "" {
		text += "; a valid answer is " + example(op, id, line, c.caps)
	}
	return c.wrong(op, record.BadOutput, text+"; messages for people belong on standard error")
}
