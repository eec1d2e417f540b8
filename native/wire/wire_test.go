package wire_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

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

func TestALineHasItsTimeEvenWhenItFails(t *testing.T) {
	l := wire.NewLines(strings.NewReader("a\nb"))
	for _, want := range []error{nil, io.ErrUnexpectedEOF} {
		if _, at, err := l.Next(); at.IsZero() || !errors.Is(err, want) {
			t.Errorf("at %v: %v, want %v", at, err, want)
		}
	}
}

// Lines that come together have one time, that of their arrival, however long it takes to go through them.
func TestLinesThatOneReadBringsHaveOneTime(t *testing.T) {
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
	for s := wire.NewEvents(r); ; {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, e.At)
	}
	if len(times) != 5 || !times[0].Equal(times[1]) || !times[1].Before(times[2]) || !times[2].Equal(times[3]) ||
		!times[3].Before(times[4]) {
		t.Errorf("1 and 2 came together, then 3 and 4, then 5: %v", times)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("error: {}\n: x\ndata: [DONE]\n"))
	f.Add([]byte("data: \r\n\ndata:  1 \ndata: cut"))
	f.Fuzz(func(t *testing.T, data []byte) {
		events, end := all(bytes.NewReader(data))
		// Nothing but the lines with something in them, in their order: what was read can be written, and is read the
		// same again.
		var again strings.Builder
		for _, e := range events {
			field, rest, ok := strings.Cut(e, " ")
			if !ok || rest == "" || field != "data" && field != "error" || strings.TrimSpace(rest) != rest ||
				strings.Contains(rest, "\n") {
				t.Fatalf("%q is no event", e)
			}
			again.WriteString(field + ":" + rest + "\n\n")
		}
		if same, err := all(strings.NewReader(again.String())); !slices.Equal(same, events) || !errors.Is(err, io.EOF) {
			t.Fatalf("%q, then %q (%v)", events, same, err)
		}
		if whole := len(data) == 0 || data[len(data)-1] == '\n'; whole != errors.Is(end, io.EOF) ||
			whole == errors.Is(end, io.ErrUnexpectedEOF) {
			t.Fatalf("%q ends with %v", data, end)
		}
	})
}
