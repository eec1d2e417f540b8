package record

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/lines"
)

// Columns may be in any order, and later versions may have more of them.
func TestSamplesAreReadByColumnName(t *testing.T) {
	const header = "new,edge,hwm_mb,swap_mb,uss_mb,pss_mb,attempt,source,read_ns,t_ns,vms_mb,rss_mb\n"
	for text, want := range map[string]string{
		header + "7,idle,1e2,,,-0,1,2,-5,+6,0x1p2,3\n":                    "",
		header + "7,idle,1e2,,,-0,1,2,-5,+6,0x1p2,\n8,,,,,,1,1,1,1,,-1\n": "line 3: column rss_mb: \"-1\" is not a size in MiB",
		header + "7,idle,1e2,,,-0,1,,-5,+6,0x1p2,3\n":                     "line 2: column source: \"\" is not a whole number",
		header + "7,idle\n":      "line 2: 2 fields, but the header has 12",
		"attempt,attempt\n1,1\n": "line 1: duplicate column \"attempt\"",
		strings.Replace(header, "pss_mb", "p", 1) + "7,,,,,,1,2,-5,+6,,\n":               "line 2: missing column \"pss_mb\"",
		header + "7,,,,,,9,2,-5,6,,3\n7,,,,,,1,9,-5,6,,3\n7,idle,100,,,0,1,2,-5,6,4,3\n": "", // unknown attempt and source
	} {
		path, a := t.TempDir()+"/samples.csv", &Attempt{Sources: map[int]Source{2: {}, 1: {}}}
		put(t, path, []byte(text))
		b := &builder{attempts: map[int]*Attempt{1: a}}
		_, err := lines.EachRow(path, sampleColumns, b.sample)
		if want != "" {
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
			continue
		}
		check.Err(t, err)
		if len(a.Samples) != 1 {
			t.Fatalf("%s: %d samples", text, len(a.Samples))
		}
		if s := a.Samples[0]; s.Source != 2 || s.ReadNS != -5 || s.NS != 6 || s.VMS != 4 || s.RSS != 3 || s.PSS != 0 ||
			s.HWM != 100 || s.USS == s.USS || s.Edge != Idle {
			t.Errorf("%s: %+v", text, s)
		}
	}
}

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
