package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"llmparity/internal/record"
)

// read takes the engine's lines until none comes.
func (c *conn) read() {
	defer close(c.gone)
	go func() {
		<-c.proc.Done()
		_ = c.out.SetReadDeadline(time.Now().Add(time.Second)) // somebody whom it started may still have the other end
	}()
	out := &timed{from: c.out}
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	lines.Split(wholeLines)
	for lines.Scan() {
		if err := c.take(lines.Bytes(), out); err != nil {
			c.fail(err)
			return
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		c.lines++
		c.fail(c.breach(fmt.Sprintf("it is longer than %d MiB", maxLine>>20), nil))
		return
	}
	c.fail(c.ended())
}

// timed is a reader that knows when it last read. Lines that came together were read together: only the last one's end
// is waited for.
type timed struct {
	from io.Reader
	at   time.Time
	n    int // reads
}

func (t *timed) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	t.at = time.Now()
	t.n++
	return n, err
}

// take hands a line to who waits for it.
func (c *conn) take(line []byte, by *timed) error {
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
	case now.got <- received{m, by.at, by.n}:
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

// wholeLines leaves out what comes behind the last line's end: an engine that is ended while it writes has not said it.
func wholeLines(data []byte, _ bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, bytes.TrimSuffix(data[:i], []byte("\r")), nil
	}
	return 0, nil, nil
}
