package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/reports/reportstest"
)

// pageLimit is the maximum size of a report, including the charting library.
const pageLimit = 3_000_000

// The page of a long run is small and keeps the maximum of every line.
func TestLongReportIsSmallAndKeepsPeaks(t *testing.T) {
	dir := comparetest.Long(t, t.TempDir(), 100_000, 10_000)
	path := filepath.Join(t.TempDir(), "report.html")
	var out, errs strings.Builder
	if code := execute([]string{"report", dir, "-o", path}, &out, &errs); code != 0 {
		t.Fatal(code, errs.String())
	}
	page := readFile(t, path)
	if len(page) > pageLimit {
		t.Errorf("the page has %d bytes, %d are allowed", len(page), pageLimit)
	}
	drawn := highestDrawn(t, []byte(page))
	lines := 0
	for name, want := range highestRecorded(t, dir) {
		if got, ok := drawn[name]; !ok || math.Abs(got-want) > 0.005+1e-9 { // drawn to a hundredth of a MiB
			t.Errorf("%s: the highest of the record is %.4f, the highest that is drawn %.2f (%v)", name, want, got, ok)
		}
		lines++
	}
	if want := 5 * (2 + 2*7 + 2 + 1); lines != want {
		t.Errorf("%d lines of the record were looked at, there are %d", lines, want)
	}
}

// highestDrawn returns the maximum of each line in a page, by attempt and name.
func highestDrawn(t *testing.T, page []byte) map[string]float64 {
	t.Helper()
	var charts map[string][]struct {
		Name    string `json:"name"`
		Options struct {
			Series []struct {
				Name string            `json:"name"`
				Data []json.RawMessage `json:"data"`
			} `json:"series"`
		} `json:"options"`
	}
	if err := json.Unmarshal(reportstest.Drawings(t, page), &charts); err != nil {
		t.Fatalf("the page's drawings: %v", err)
	}
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

// highestRecorded returns the same from the CSV files.
func highestRecorded(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	highest := func(row map[string]string, name, column string) {
		if row[column] == "" {
			return
		}
		v, err := strconv.ParseFloat(row[column], 64)
		check(t, err)
		launch := row["label"][strings.LastIndexByte(row["label"], 'r')+1:]
		name = fmt.Sprintf("cell %s, launch %s, %s", row["cell"], launch, name)
		out[name] = max(out[name], v)
	}
	eachCSV(t, filepath.Join(dir, "totals.csv"), func(row map[string]string) {
		if row["method"] == "statm" {
			highest(row, "RSS sum", "rss_sum_mb")
		} else {
			highest(row, "total PSS", "pss_mb")
		}
	})
	eachCSV(t, filepath.Join(dir, "samples.csv"), func(row map[string]string) {
		name := row["role"]
		if name == "zygote" {
			name += " " + row["pid"] // there are two
		}
		if row["pss_mb"] == "" { // a row of the quick method, whose RSS is drawn
			highest(row, name+" RSS", "rss_mb")
		} else if row["cell"] == "1" { // of one process PSS is the total
			highest(row, name+" PSS", "pss_mb")
		}
	})
	return out
}

func eachCSV(t *testing.T, path string, do func(row map[string]string)) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(readFile(t, path))).ReadAll()
	check(t, err)
	row := map[string]string{}
	for _, fields := range rows[1:] {
		for i, name := range rows[0] {
			row[name] = fields[i]
		}
		do(row)
	}
}
