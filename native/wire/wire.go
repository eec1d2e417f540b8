// Package wire asks servers and reads what they send: lines, and server-sent events of one line each, with the time at
// which each had come; and the pages of metrics that they offer to Prometheus.
//
// It knows no server. The time of a line is that at which the read returned that brought its last byte: parsing is our
// time, not the server's, and lines that came together have one time. How they were held up on their way can't be seen
// from here. An event whose data goes over several lines is not put together: no server of language models sends one.
package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// MaxLine bounds one line of a stream. Some servers' last event repeats the prompt and its settings, so lines are long.
const MaxLine = 64 << 20

// Buffer is the size of a read. If the connection's own buffer is as large, a read does not split a server's chunk.
const Buffer = 64 << 10

// clocked notes when the last read returned.
type clocked struct {
	r  io.Reader
	at time.Time
}

func (c *clocked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.at = time.Now()
	return n, err
}

// ErrTooLong is a line that is longer than it may be.
var ErrTooLong = errors.New("a line of the stream is too long")

// Lines reads lines.
type Lines struct {
	Max int // bytes of a line

	r     *bufio.Reader
	clock *clocked
}

// NewLines reads r, which it may read ahead.
func NewLines(r io.Reader) *Lines {
	c := &clocked{r: r}
	return &Lines{MaxLine, bufio.NewReaderSize(c, Buffer), c}
}

// Next gives a line without its end, valid until the next call, and when it had come: lines that one read brought have
// the same time. io.EOF means that the stream ended between two lines; one that breaks off inside a line is cut short:
// io.ErrUnexpectedEOF.
func (l *Lines) Next() (line []byte, at time.Time, err error) {
	// Nothing is read while the buffer holds a whole line, so that whatever is in it behind a line's end came with the
	// last read.
	line, err = l.next()
	return line, l.clock.at, err
}

func (l *Lines) next() ([]byte, error) {
	var long []byte
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case err == nil && long == nil:
			return bytes.TrimRight(part, "\r\n"), nil
		case err == nil:
			return bytes.TrimRight(append(long, part...), "\r\n"), nil
		case errors.Is(err, io.EOF) && len(long)+len(part) > 0:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
		if long = append(long, part...); len(long) > l.Max {
			return nil, fmt.Errorf("%w: over %d MiB", ErrTooLong, l.Max>>20)
		}
	}
}

// Event is a server-sent event of one line.
type Event struct {
	Field string // data, or error where a server sends its error under that name
	Data  []byte // valid until the next call
	At    time.Time
}

// Done tells that the event is the mark by which servers end a stream.
func (e Event) Done() bool { return bytes.Equal(e.Data, []byte("[DONE]")) }

// Events reads server-sent events.
type Events struct{ lines *Lines }

// NewEvents reads r, which it may read ahead.
func NewEvents(r io.Reader) *Events { return &Events{NewLines(r)} }

// Next gives the next event. Lines that carry nothing are passed over: comments (a server's pings), empty ones, other
// fields. Errors are those of Lines.
func (s *Events) Next() (Event, error) {
	for {
		line, at, err := s.lines.Next()
		if err != nil {
			return Event{At: at}, err
		}
		for _, field := range []string{"data", "error"} {
			rest, ok := bytes.CutPrefix(line, []byte(field+":"))
			if rest = bytes.TrimSpace(rest); ok && len(rest) > 0 {
				return Event{Field: field, Data: rest, At: at}, nil
			}
		}
	}
}
