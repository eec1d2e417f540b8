package wire_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/native/wire"
)

// all reads a stream to its end.
func all(r io.Reader) (events []string, err error) {
	s := wire.NewLines(r)
	for {
		e, err := s.NextEvent()
		if err != nil {
			return events, err
		}
		events = append(events, string(e.Data))
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name, in, want string
		end            error
	}{
		{"comments and other fields", ": ping\nevent: x\nid: 1\n\ndata: {\"a\":1}\n\n", `{"a":1}`, io.EOF},
		{"carriage returns, no space", "data:1\r\n\r\ndata:2\r\n", "1|2", io.EOF},
		{"error field", "error: {}\n", `{"error":{}}`, io.EOF},
		{"no data", "data:\ndata: \ndatum: 1\n", "", io.EOF},
		{"incomplete", "data: 1\ndata: {\"a", "1", io.ErrUnexpectedEOF},
		{"a long line", "data: " + long + "\n", long, io.EOF},
	} {
		for way, cut := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader,
			"with EOF": iotest.DataErrReader,
		} {
			t.Run(c.name+" "+way, func(t *testing.T) {
				events, err := all(cut(strings.NewReader(c.in)))
				if got := strings.Join(events, "|"); got != c.want || !errors.Is(err, c.end) {
					t.Errorf("%.100q, %v; want %.100q, %v", got, err, c.want, c.end)
				}
			})
		}
	}
}

// Lines of one read have the time of the read, however long processing them takes.
func TestLinesOfOneReadHaveOneTime(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	go func() {
		for _, text := range []string{"data: 1\ndata: 2\nda", "ta: 3\ndata: 4\n", "data: 5\n"} {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
		w.Close()
	}()
	var times []time.Time
	for s := wire.NewLines(r); ; {
		e, err := s.NextEvent()
		if errors.Is(err, io.EOF) {
			break
		}
		check.Err(t, err)
		times = append(times, e.At)
	}
	if len(times) != 5 || !times[0].Equal(times[1]) || !times[1].Before(times[2]) || !times[2].Equal(times[3]) ||
		!times[3].Before(times[4]) {
		t.Errorf("1 and 2 were read together, then 3 and 4, then 5: %v", times)
	}
}

func TestFigures(t *testing.T) {
	for text, want := range map[string]map[string]float64{
		``: {}, `null`: {}, `{}`: {},
		`{"n":4,"ms":0.5,"cache":null,"name":"x","list":[1],"yes":true}`: {"n": 4, "ms": 0.5},
	} {
		if got, err := wire.Figures(json.RawMessage(text)); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{`[1]`, `7`, `{"n":`, `"n"`} {
		if got, err := wire.Figures(json.RawMessage(text)); err == nil {
			t.Errorf("%s is parsed as %v", text, got)
		}
	}
}

func TestIsHere(t *testing.T) {
	hosts := map[string]bool{"localhost": true, "a.localhost": true, "127.0.0.2": true, "::1": true,
		"::ffff:127.0.0.1": true, "0.0.0.0": true,
		"192.0.2.1": false, "example.org": false, "127.0.0.1.example.org": false, "": false}
	own, err := net.InterfaceAddrs()
	check.Err(t, err)
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			hosts[n.IP.String()] = true
		}
	}
	for host, want := range hosts {
		if got := wire.IsHere(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
