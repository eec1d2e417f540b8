package llamacpp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// captured reads the events that a real llama-server sent for a completion.
func captured(t *testing.T, name string) []event {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	s := newStream(bytes.NewReader(data))
	var events []event
	for {
		e, _, err := s.next()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

func TestStream(t *testing.T) {
	for _, c := range []struct {
		name   string
		counts string // ids in each event / the server's count
		stop   string
	}{
		// The counts skip tokens that ended inside a character: their ids are not in the stream.
		{"completion.sse", "1/1 1/2 1/3 1/4 1/6 0/6", "limit"},
		{"held-back.sse", "1/4 1/5 1/6 1/7 1/8 1/9 1/10 1/11 1/12 1/13 1/17 1/18 1/19 1/20 1/21 1/22 1/23 1/24 1/25 1/26 1/27 1/28 " +
			"1/29 1/30 1/31 1/32 1/33 1/34 1/36 1/37 1/38 1/39 1/40 0/40", "limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := captured(t, c.name)
			var counts []string
			for _, e := range events {
				counts = append(counts, fmt.Sprintf("%d/%d", len(e.Tokens), e.Predicted))
			}
			if got := strings.Join(counts, " "); got != c.counts {
				t.Errorf("counts %s\nwant   %s", got, c.counts)
			}
			last := events[len(events)-1]
			if !last.Stop || last.StopType != c.stop {
				t.Errorf("the last event: stop %v by %q", last.Stop, last.StopType)
			}
		})
	}
}

func TestReported(t *testing.T) {
	events := captured(t, "completion.sse")
	got, err := reported(events[len(events)-1].Timings)
	if err != nil {
		t.Fatal(err)
	}
	if got["prompt_n"] != 3 || got["predicted_n"] != 6 || got["cache_n"] != 0 || got["prompt_ms"] <= 0 ||
		got["predicted_ms"] <= 0 {
		t.Errorf("timings %v", got)
	}
	got, err = reported([]byte(`{"a": 1, "b": "text", "c": null, "d": [1], "e": true}`))
	if err != nil || len(got) != 1 || got["a"] != 1 {
		t.Errorf("figures %v, %v; want only a", got, err)
	}
	if _, err := reported([]byte(`[1]`)); err == nil {
		t.Error("a list is accepted as timings")
	}
}

func TestStreamOddities(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"end mark", "data: [DONE]\n\n", "EOF"},
		{"not JSON", "data: {tokens}\n", "invalid event"},
		{"error as data", "data: {\"error\":{\"code\":500,\"message\":\"no\",\"type\":\"server_error\"}}\n",
			`"message":"no"`},
		{"error as a field", "error: {\"code\":500,\"message\":\"no\",\"type\":\"server_error\"}\n",
			`"message":"no"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, _, err := newStream(strings.NewReader(c.in)).next()
			got := fmt.Sprint(e.Tokens)
			if err != nil {
				got = err.Error()
			} else if e.Error != nil {
				got = string(e.Error)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func FuzzStream(f *testing.F) {
	for _, name := range []string{"completion.sse", "held-back.sse"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("error: {}\n: x\ndata: [DONE]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newStream(bytes.NewReader(data))
		for n := 0; ; n++ {
			e, at, err := s.next()
			if at.IsZero() {
				t.Fatal("no time")
			}
			if err != nil {
				return
			}
			if n > bytes.Count(data, []byte("\n")) {
				t.Fatal("more events than lines")
			}
			_, _ = reported(e.Timings) // must not panic
		}
	})
}
