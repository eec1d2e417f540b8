package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"llmparity/native/wire"
)

// all reads a stream to its end.
func all(r io.Reader) (events []string, err error) {
	s := wire.NewEvents(r)
	for {
		e, err := s.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e.Field+" "+string(e.Data))
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name, in, want string
		end            error
	}{
		{"comments and other fields", ": ping\nevent: x\nid: 1\n\ndata: {\"a\":1}\n\n", `data {"a":1}`, io.EOF},
		{"carriage returns, no space", "data:1\r\n\r\ndata:2\r\n", "data 1|data 2", io.EOF},
		{"an error of its own", "error: {}\n", "error {}", io.EOF},
		{"no data", "data:\ndata: \ndatum: 1\n", "", io.EOF},
		{"cut short", "data: 1\ndata: {\"a", "data 1", io.ErrUnexpectedEOF},
		{"a long line", "data: " + long + "\n", "data " + long, io.EOF},
	} {
		for way, cut := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "with EOF": iotest.DataErrReader,
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

func TestALineHasItsTimeEvenWhenItFails(t *testing.T) {
	l := wire.NewLines(strings.NewReader("a\nb"))
	for _, want := range []error{nil, io.ErrUnexpectedEOF} {
		if _, at, err := l.Next(); at.IsZero() || !errors.Is(err, want) {
			t.Errorf("at %v: %v, want %v", at, err, want)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("error: {}\n: x\ndata: [DONE]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		events, _ := all(bytes.NewReader(data))
		if len(events) > bytes.Count(data, []byte("\n")) {
			t.Fatal("more events than lines")
		}
	})
}
