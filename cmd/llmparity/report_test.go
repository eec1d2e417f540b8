package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/internal/record"
	"llmparity/reports/reportstest"
)

func TestDetails(t *testing.T) {
	lightTest(t)
	dir := predictedRun(t, t.TempDir(), "details", 0.53125)
	for _, command := range []string{"report", "compare"} {
		short, long := good(t, command, dir), good(t, command, dir, "--details")
		for _, title := range []string{"\nPredicted and measured\n", "\nMemory by process and part\n"} {
			if strings.Contains(short, title) || !strings.Contains(long, title) {
				t.Errorf("%s: %q is not in the details alone", command, title)
			}
		}
	}
}

// pageLimit is the maximum size of a report, including the charting library.
const pageLimit = 3_000_000

// The page of a long run is small and keeps the maximum of every line.
func TestLongReportIsSmallAndKeepsPeaks(t *testing.T) {
	lightTest(t)
	dir := comparetest.Long(t, t.TempDir(), 100_000, 10_000)
	path := filepath.Join(t.TempDir(), "report.html")
	good(t, "report", dir, "-o", path)
	page := readFile(t, path)
	if len(page) > pageLimit {
		t.Errorf("the page has %d bytes, %d are allowed", len(page), pageLimit)
	}
	drawn, recorded := highestDrawn(t, []byte(page)), highestRecorded(opened(t, dir))
	for name, want := range recorded {
		if got, ok := drawn[name]; !ok || math.Abs(got-want) > 0.005+1e-9 { // drawn to a hundredth of a MiB
			t.Errorf("%s: the highest of the record is %.4f, the highest that is drawn %.2f (%v)", name, want, got, ok)
		}
	}
	if want := 5 * (2 + 2*7 + 2 + 1); len(recorded) != want {
		t.Errorf("%d lines of the record were looked at, there are %d", len(recorded), want)
	}
}

// highestDrawn returns the maximum of each line in a page, by attempt and name.
func highestDrawn(t *testing.T, page []byte) map[string]float64 {
	t.Helper()
	charts := decoded[map[string][]struct {
		Name    string
		Options struct {
			Series []struct {
				Name string
				Data []json.RawMessage
			}
		}
	}](t, string(reportstest.Drawings(t, page)))
	out := map[string]float64{}
	for cell, chart := range map[int]string{1: "memory-0", 2: "memory-1"} {
		for _, d := range charts[chart] {
			launch, _, _ := strings.Cut(strings.TrimPrefix(d.Name, "launch "), " ")
			for _, s := range d.Options.Series {
				name := fmt.Sprintf("cell %d, launch %s, %s", cell, launch, s.Name)
				for _, text := range s.Data {
					var p [2]float64
					if json.Unmarshal(text, &p) == nil {
						out[name] = max(out[name], p[1])
					}
				}
			}
		}
	}
	return out
}

// highestRecorded returns the same from the record.
func highestRecorded(r *record.Run) map[string]float64 {
	out := map[string]float64{}
	for _, a := range r.Attempts {
		highest := func(name string, mib float64) {
			if !math.IsNaN(mib) {
				name = fmt.Sprintf("cell %d, launch %d, %s", a.Cell, a.Repetition, name)
				out[name] = max(out[name], mib)
			}
		}
		for _, total := range a.Totals {
			if total.Method == record.MethodStatm {
				highest("RSS sum", total.RSS)
			} else {
				highest("total PSS", total.PSS)
			}
		}
		for _, s := range a.Samples {
			name := a.Sources[s.Source].Role
			if name == "zygote" {
				name += fmt.Sprint(" ", a.Sources[s.Source].PID) // there are two
			}
			if math.IsNaN(s.PSS) { // a row of the quick method, whose RSS is drawn
				highest(name+" RSS", s.RSS)
			} else if a.Cell == 1 { // of one process PSS is the total
				highest(name+" PSS", s.PSS)
			}
		}
	}
	return out
}
