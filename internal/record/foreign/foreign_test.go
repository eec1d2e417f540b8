package foreign_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/foreign"
)

func read(t *testing.T, text string) *record.Run {
	t.Helper()
	r, err := foreign.Read("rows.csv", []byte(text))
	check.Err(t, err)
	return r
}

func codes(r *record.Run) []string {
	out := []string{}
	for _, w := range r.Warnings {
		out = append(out, w.Code)
	}
	return out
}

// The example is from a profiler: two labels, one of them with two processes and a heap.
func TestExample(t *testing.T) {
	r, err := foreign.Open(filepath.Join("testdata", "profiler.csv"))
	check.Err(t, err)
	if r.Status != record.OK || len(r.Cells) != 2 || r.Cells[0].Engine != "ollama-run1" ||
		r.Cells[1].Engine != "webllm-run1" {
		t.Fatalf("%+v", r.Cells)
	}
	if want := time.Date(2024, 1, 15, 10, 30, 0, 123456000, time.UTC); !r.Meta.Started.Equal(want) {
		t.Errorf("started %v, want %v", r.Meta.Started, want)
	}
	ollama, webllm := r.Attempts[0], r.Attempts[1]
	if len(ollama.Samples) != 6 || len(ollama.Sources) != 2 || len(ollama.Totals) != 4 {
		t.Fatalf("%d samples of %d sources, %d sums", len(ollama.Samples), len(ollama.Sources), len(ollama.Totals))
	}
	var sums []float64
	for _, s := range ollama.Totals {
		sums = append(sums, s.RSS)
	}
	if want := []float64{512.25, 612.25, 1536.5, 1024}; !slices.Equal(sums, want) {
		t.Errorf("sums of RSS %v, want %v", sums, want)
	}
	if ollama.Totals[1].NS != 100*int64(time.Millisecond) || ollama.Totals[2].Processes != 2 ||
		ollama.Totals[3].Processes != 1 {
		t.Errorf("%+v", ollama.Totals)
	}
	if len(webllm.Metrics) != 3 || webllm.Metrics[1].Value != 96.5*record.MiB || !math.IsNaN(webllm.Totals[0].RSS) {
		t.Errorf("%+v %+v", webllm.Metrics, webllm.Totals)
	}
	e, ok := ollama.Engine()
	if !ok || e.Version != "profiler.csv" || len(e.SHA256) != 64 ||
		e.Parts["timestamps"] != "ISO 8601 without a zone, read as UTC" {
		t.Errorf("where it comes from: %+v", e)
	}
	if _, ok := ollama.Device(); ok || len(ollama.Phases) > 0 || len(ollama.Requests) > 0 ||
		r.Cells[0].Model.Name != "" {
		t.Error("the run has something that no row has")
	}
	if got := codes(r); !slices.Equal(got, []string{"foreign-rows"}) {
		t.Errorf("warnings %v", got)
	}
}

// The same rows in any notation.
func TestReadEquivalentFiles(t *testing.T) {
	const plain = "timestamp,label,pid,rss_mb,vms_mb\n2024-01-15T10:30:00.500000,a,7,1.5,3\n2024-01-15T10:30:01,a,7,2.5,3\n"
	want := read(t, plain).Attempts[0]
	for name, text := range map[string]string{
		"byte order mark": "\ufeff" + plain,
		"CRLF":            strings.ReplaceAll(plain, "\n", "\r\n"),
		"another order":   "vms_mb,rss_mb,more,label,timestamp,pid\n3,1.5,x,a,2024-01-15T10:30:00.5,7\n3,2.5,\"x, y\",a,2024-01-15T10:30:01,7\n",
		"a zone":          "timestamp,label,pid,rss_mb,vms_mb\n2024-01-15T12:30:00.5+02:00,a,7,1.5,3\n2024-01-15T10:30:01Z,a,7,2.5,3\n",
		"quotes":          "\"timestamp\",\"label\",\"pid\",\"rss_mb\",\"vms_mb\"\n\"2024-01-15T10:30:00.5\",\"a\",\"7\",\"1.5\",\"3\"\n\"2024-01-15T10:30:01\",\"a\",\"7\",\"2.5\",\"3\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, text)
			got := r.Attempts[0]
			if r.Cells[0].Engine != "a" || r.Meta.Started.UnixNano() != 1705314600500000000 ||
				len(got.Totals) != len(want.Totals) {
				t.Fatalf("%+v at %v", r.Cells, r.Meta.Started)
			}
			for i, s := range got.Totals {
				if w := want.Totals[i]; s.NS != w.NS || s.RSS != w.RSS || s.VMS != w.VMS || s.Processes != 1 {
					t.Errorf("row %d: %+v, want %+v", i, s, w)
				}
			}
			if got.Sources[1].PID != 7 || got.Sources[1].Every != 500*time.Millisecond {
				t.Errorf("%+v", got.Sources[1])
			}
		})
	}
}

func TestReadWarns(t *testing.T) {
	const header = "timestamp,label,pid,rss_mb,vms_mb\n"
	for _, c := range []struct{ name, text, code, words string }{
		{"cut", header + "2024-01-15T10:30:00,a,7,1,3\n2024-01-15T10:30:01,a,7,2", "cut", "incomplete last line ignored"},
		{"backwards", header + "2024-01-15T10:30:02,a,7,1,3\n2024-01-15T10:30:01,a,7,2,3\n2024-01-15T10:30:03,a,7,2,3\n", "clock-backwards",
			"earlier than the previous row of their process (clock set back, or unsorted): the first in line 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := read(t, c.text)
			at := slices.Index(codes(r), c.code)
			if at < 0 || !strings.Contains(r.Warnings[at].Text, c.words) {
				t.Fatalf("%+v", r.Warnings)
			}
			times := r.Attempts[0].Totals
			if !slices.IsSortedFunc(times, func(a, b record.TotalRow) int { return int(a.NS - b.NS) }) ||
				times[0].NS != 0 {
				t.Errorf("%+v", times)
			}
		})
	}
	// Processes read one after another: totals use the last reading of each.
	r := read(t, header+"2024-01-15T10:30:00,a,7,1,3\n2024-01-15T10:30:01,a,8,10,3\n2024-01-15T10:30:02,a,7,2,3\n2024-01-15T10:30:03,a,8,20,3\n")
	if w := r.Attempts[0].Warnings; len(w) != 1 || w[0].Code != "readings-apart" {
		t.Errorf("%+v", w)
	}
	if got := r.Attempts[0].Totals; got[0].RSS != 1 || got[1].RSS != 11 || got[2].RSS != 12 || got[3].RSS != 20 {
		t.Errorf("%+v", got)
	}
}

func TestReadRefuses(t *testing.T) {
	const header = "timestamp,label,pid,rss_mb,vms_mb\n"
	for text, want := range map[string]string{
		"":     "rows.csv is empty",
		" \n ": "rows.csv is empty",
		"timestamp;label;pid;rss_mb;vms_mb\n2024-01-15;a;7;1,5;3\n":             "rows.csv line 1: columns are not separated by commas; use commas",
		"time,label,rss_mb\n1,a,2\n":                                            "rows.csv line 1: no column timestamp",
		"timestamp,label\n1,a\n":                                                "rows.csv line 1: no column rss_mb or heap_used_mb",
		"timestamp,rss_mb,rss_mb\n":                                             `duplicate column "rss_mb"`,
		header:                                                                  "rows.csv has a header, but no complete row",
		strings.TrimSuffix(header, "\n"):                                        "rows.csv has no complete line",
		header + "2024-01-15T10:30:00,a,7,512,34,3\n":                           "rows.csv line 2: 6 fields, but the header has 5; write numbers with a point",
		header + "2024-01-15T10:30:00,a,7,\"512,34\",3\n":                       `rows.csv line 2, column rss_mb: "512,34" contains a comma; write numbers with a point`,
		header + "2024-01-15T10:30:00,a,7,1,3\n2024-01-15T10:30:01,a,7,-5,3\n":  `rows.csv line 3, column rss_mb: "-5" is not a size in MiB`,
		header + "2024-01-15T10:30:00,a,7,inf,3\n":                              `column rss_mb: "inf" is not a size in MiB`,
		header + "2024-01-15T10:30:00,a,7,1,many\n":                             `column vms_mb: "many" is not a size in MiB`,
		header + "2024-01-15T10:30:00,a,seven,1,3\n":                            `column pid: "seven" is not a pid`,
		header + "1705314600,a,7,1,3\n":                                         `column timestamp: "1705314600" is not a time`,
		header + "2024-01-15T10:30:00,a,7,NaN,3\n":                              `column rss_mb: "NaN" is not a size in MiB`,
		header + "yesterday,a,7,1,3\n":                                          `column timestamp: "yesterday" is not a time`,
		header + "2024-01-15T10:30:00,a,7,1,3\n2024-01-15T10:30:00Z,a,7,1,3\n":  `line 3, column timestamp: "2024-01-15T10:30:00Z" is not in ISO 8601 without a zone`,
		header + "2024-01-15T10:30:00,\"a,7,1,3\n2024-01-15T10:30:01,a,7,1,3\n": "rows.csv line",
		"\xff\xfet\x00i\x00":                                                    "is not UTF-8 text",
		"timestamp,rss_mb,attempt,source\n2024-01-15T10:30:00,1,1,1\n":          "rows.csv is part of a run folder; name the folder: .",
	} {
		_, err := foreign.Read("rows.csv", []byte(text))
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.BadRecord || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\n%v\nwant %s", text, err, want)
		}
	}
	if _, err := foreign.Open(filepath.Join(t.TempDir(), "none.csv")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := foreign.Open(os.DevNull); fault.Of(err) != fault.BadRecord ||
		!strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a device: %v", err)
	}
}

// Every output format is UTF-8, so a label must be valid.
func TestReadReplacesInvalidUTF8(t *testing.T) {
	r := read(t, "timestamp,label,rss_mb\n2024-01-15T10:30:00,caf\xe9,5\n")
	if got := r.Cells[0].Engine; got != "caf\ufffd" || !slices.Contains(codes(r), "not-utf-8") {
		t.Errorf("label %q, warnings %q", got, codes(r))
	}
}
