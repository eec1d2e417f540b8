package llamacpp

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"llmparity/native/wire"
)

// stream reads server-sent events, one JSON object each.
type stream struct{ events *wire.Events }

func newStream(r io.Reader) *stream { return &stream{wire.NewEvents(r)} }

// next gives the next event and when its line had been read. io.EOF means that the stream ended between two lines.
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
		if sent.Field == "error" { // from some versions; from others it is in plain data
			data = append(append([]byte(`{"error":`), data...), '}')
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return event{}, sent.At, fmt.Errorf("an event of llama-server's is not what it should be: %w in %.80q", err,
				data)
		}
		if e.Error != nil {
			e.Error.Who = "llama-server"
		}
		return e, sent.At, nil
	}
}
