package llamacpp

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"llmparity/native/wire"
)

// stream reads server-sent events with one JSON object each.
type stream struct{ events *wire.Events }

func newStream(r io.Reader) *stream { return &stream{wire.NewEvents(r)} }

// next returns the next event and when its line was read. io.EOF means that the stream ended between two lines.
func (s *stream) next() (event, time.Time, error) {
	for {
		sent, err := s.events.Next()
		if err != nil {
			return event{}, sent.At, err
		}
		if sent.Done() {
			continue
		}
		data := sent.Data
		if sent.Field == "error" { // in some versions; others put it into data
			data = append(append([]byte(`{"error":`), data...), '}')
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return event{}, sent.At, fmt.Errorf("llama-server sent an invalid event: %w in %.80q", err, data)
		}
		return e, sent.At, nil
	}
}
