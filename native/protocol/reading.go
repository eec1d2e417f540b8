package protocol

import (
	"errors"
	"fmt"
	"time"

	"llmparity/internal/record"
	"llmparity/native/wire"
)

// read takes the engine's lines until none comes.
func (c *conn) read() {
	defer close(c.gone)
	go func() {
		<-c.Done()
		_ = c.out.SetReadDeadline(time.Now().Add(time.Second)) // somebody whom it started may still have the other end
	}()
	lines := wire.NewLines(c.out)
	lines.Max = maxLine
	for {
		line, at, err := lines.Next()
		switch {
		case errors.Is(err, wire.ErrTooLong):
			c.lines++
			c.fail(c.breach(fmt.Sprintf("it is longer than %d MiB", maxLine>>20), nil))
			return
		case err != nil: // half a line that it was ended in was not said
			c.fail(c.ended())
			return
		}
		if err := c.take(line, at); err != nil {
			c.fail(err)
			return
		}
	}
}

// take hands a line to who waits for it.
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
	case <-now.given: // nobody listens
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

// fits says why a message is no answer to the call, which may be none.
func (k *call) fits(m message) error {
	switch {
	case k == nil:
		return fmt.Errorf("it answers request %d, and none goes on", m.ID)
	case m.ID != k.id:
		return fmt.Errorf("it answers request %d, and request %d (%s) goes on", m.ID, k.id, k.op)
	case m.Event == evToken && k.op != opGenerate && k.op != opScore, m.Event == evStage && k.op != opLoad:
		return fmt.Errorf("a %s is no answer to %s", m.Event, k.op)
	case m.Event == evToken:
		k.tokens++
		k.text += len(m.Text)
	case m.Event == evStage:
		k.stages++
	}
	switch {
	case k.tokens > k.max:
		return fmt.Errorf("it is token %d of a generation of %d", k.tokens, k.max)
	case k.text > maxText:
		return fmt.Errorf("the text of a generation is longer than %d MiB", maxText>>20)
	case k.stages > maxStages:
		return fmt.Errorf("a load has more than %d stages", maxStages)
	}
	return nil
}

// breach is a line that the protocol doesn't have.
func (c *conn) breach(what string, line []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	op, id := "", 0
	if c.call != nil {
		op, id = c.call.op, c.call.id
	}
	said := ""
	if line != nil {
		said = fmt.Sprintf("; it says %q", cut(string(line), 80))
	}
	text := fmt.Sprintf("%s breaks the protocol in line %d of its output: %s%s", c.name, c.lines, what, said)
	if op != "" {
		text += "; a right answer is such as " + example(op, id, line, c.caps)
	}
	return c.wrong(op, record.BadOutput, text+"; what is for people belongs to standard error")
}
