package record

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/check"
)

// The highest of the remaining readings would pass for the peak, so a cut file leaves no figure of a launch.
func TestOpenDropsIncompleteReadings(t *testing.T) {
	w := made(t, Cell{ID: 1, Engine: "e", Repetitions: 2})
	begin := time.Now()
	for repetition := 1; repetition <= 2; repetition++ {
		r := w.Begin(Cell{ID: 1}, Beginning{Repetition: repetition})
		id := r.Source(Source{Role: "server", Method: MethodSmapsRollup, PID: 7})
		for i := range 10 {
			at := begin.Add(time.Duration(repetition)*time.Second + time.Duration(i)*10*time.Millisecond)
			s := NewSample()
			s.Begin, s.End, s.PSS, s.RSS = at, at.Add(time.Microsecond), int64(i+1)*MiB, int64(i+1)*MiB
			s.Values = []Value{{Name: "own_bytes", Value: float64(i)}}
			r.Sample(id, s)
			s.Values = nil
			r.Total(Total{Sample: s, Method: MethodSmapsRollup, Processes: 1})
		}
		r.End(OK, "", nil, Cost{Reads: 10})
	}
	check.Err(t, w.Close(OK))
	dir := w.dir
	has := func(a *Attempt, file string) int {
		return map[string]int{"samples.csv": len(a.Samples), "totals.csv": len(a.Totals),
			"metrics.csv": len(a.Metrics)}[file]
	}
	for _, file := range []string{"samples.csv", "totals.csv", "metrics.csv"} {
		path := filepath.Join(dir, file)
		whole := check.Read(t, path)
		lines := bytes.SplitAfter(whole, []byte("\n"))
		for name, c := range map[string]struct {
			text []byte
			left []int // rows of each launch
		}{
			"whole":                {whole, []int{10, 10}},
			"within a line":        {bytes.Join(lines[:16], nil)[:len(bytes.Join(lines[:16], nil))-3], []int{10, 0}},
			"between lines":        {bytes.Join(lines[:16], nil), []int{10, 0}},
			"between two launches": {bytes.Join(lines[:11], nil), []int{10, 0}},
			"after the header":     {lines[0], []int{0, 0}},
		} {
			if file == "metrics.csv" && name == "between lines" {
				continue // undetectable
			}
			put(t, path, c.text)
			r, err := Open(dir)
			check.Err(t, err)
			for i, a := range r.Attempts {
				reported := slices.ContainsFunc(
					a.Warnings, func(w Warning) bool {
						return w.Code == "readings-missing" &&
							strings.HasPrefix(w.Text, file)
					})
				if want := c.left[i] == 0 &&
					(file != "metrics.csv" || name == "within a line"); has(a, file) != c.left[i] || reported != want {
					t.Errorf("%s cut %s: launch %d has %d rows, want %d; warning: %v", file, name, a.ID, has(a, file),
						c.left[i], reported)
				}
			}
		}
		put(t, path, whole)
	}
}
