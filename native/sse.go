package native

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxEvent bounds one line of a stream. The last event repeats the prompt and its settings, so lines are long.
const maxEvent = 64 << 20

// stream reads server-sent events, one JSON object each.
type stream struct{ r *bufio.Reader }

func newStream(r io.Reader) *stream { return &stream{bufio.NewReaderSize(r, 64<<10)} }

// next gives the next event and when its line had been read. Lines that carry no data are passed over: comments (a server's
// pings), empty ones, and field names that /completion has no use for. io.EOF means that the stream ended between two lines.
func (s *stream) next() (event, time.Time, error) {
	for {
		line, err := s.line()
		at := time.Now() // before anything is parsed: parsing is our time, not the server's
		if err != nil {
			return event{}, at, err
		}
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			// An error comes as a field of its own name from some versions, as plain JSON from others.
			if data, ok = bytes.CutPrefix(line, []byte("error:")); !ok {
				continue
			}
			data = append(append([]byte(`{"error":`), data...), '}')
		}
		data = bytes.TrimSpace(data)
		if len(data) == 0 || bytes.Equal(data, []byte("[DONE]")) {
			continue
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return event{}, at, fmt.Errorf("an event of llama-server's is not what it should be: %w in %.80q", err, data)
		}
		return e, at, nil
	}
}

// line gives a line without its end. A stream that breaks off inside a line is cut short, not ended.
func (s *stream) line() ([]byte, error) {
	var long []byte
	for {
		part, err := s.r.ReadSlice('\n')
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
		if long = append(long, part...); len(long) > maxEvent {
			return nil, fmt.Errorf("a line of llama-server's stream is longer than %d MiB", maxEvent>>20)
		}
	}
}
