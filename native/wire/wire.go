// Package wire sends requests to servers and reads what they stream: lines and one-line server-sent events, each with
// its time, and Prometheus metrics.
//
// It knows no server. A line's time is when the read that brought its last byte returned: parsing is our time, not the
// server's, and lines of one read have the same time. Delays on the way are not visible here. Events with several data
// lines are not combined, because no language model server sends them.
package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// MaxLine limits a line of a stream. Some servers' last event repeats the prompt and its settings, so lines are long.
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

// ErrTooLong is returned for a line that is too long.
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

// Next returns a line without its end. io.EOF means that the stream ended between two lines, io.ErrUnexpectedEOF within
// one.
func (l *Lines) Next() (Event, error) {
	var long []byte
	for {
		part, err := l.r.ReadSlice('\n')
		// There is no read while the buffer has a complete line, so everything in it came with the last read.
		at := l.clock.at
		switch {
		case err == nil && long == nil:
			return Event{bytes.TrimRight(part, "\r\n"), at}, nil
		case err == nil:
			return Event{bytes.TrimRight(append(long, part...), "\r\n"), at}, nil
		case errors.Is(err, io.EOF) && len(long)+len(part) > 0:
			return Event{At: at}, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return Event{At: at}, err
		}
		if long = append(long, part...); len(long) > l.Max {
			return Event{At: at}, fmt.Errorf("%w: over %d MiB", ErrTooLong, l.Max>>20)
		}
	}
}

// Event is a line, or a server-sent event of one line.
type Event struct {
	Data []byte    // valid until the next call
	At   time.Time // when it was read; the same for all lines of one read
}

// Done reports whether the event marks the end of a stream.
func (e Event) Done() bool { return bytes.Equal(e.Data, []byte("[DONE]")) }

// Each calls take for each event until take returns true or an error. When ctx is done, what was read ahead is
// discarded. If the stream ends first, the error is io.ErrUnexpectedEOF.
func Each(ctx context.Context, next func() (Event, error), take func(Event) (last bool, err error)) error {
	for {
		e, err := next()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if last, err := take(e); last || err != nil {
			return err
		}
	}
}

// NextEvent returns the next server-sent event. It skips comments, such as pings, empty lines and other fields. Errors
// are those of Next.
func (l *Lines) NextEvent() (Event, error) {
	for {
		e, err := l.Next()
		if err != nil {
			return e, err
		}
		field, rest, _ := bytes.Cut(e.Data, []byte(":"))
		if rest = bytes.TrimSpace(rest); len(rest) == 0 {
			continue
		}
		switch string(field) {
		case "data":
			return Event{rest, e.At}, nil
		case "error": // some servers use this instead of an object in data
			return Event{slices.Concat([]byte(`{"error":`), rest, []byte("}")), e.At}, nil
		}
	}
}

// Figures returns the numeric fields of a JSON object by name. Other fields are ignored, so new ones do no harm.
func Figures(object json.RawMessage) (map[string]float64, error) {
	figures := map[string]float64{}
	if len(object) == 0 {
		return figures, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	for name, v := range fields {
		if n, ok := v.(float64); ok {
			figures[name] = n
		}
	}
	return figures, nil
}
