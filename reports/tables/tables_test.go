package tables_test

import (
	"bytes"
	"encoding/csv"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports/tables"
)

func opened(t *testing.T, engines ...comparetest.Engine) (dir string, run *record.Run) {
	t.Helper()
	dir = comparetest.Write(t, t.TempDir(), "folder", engines...)
	run, err := record.Open(dir)
	check.Err(t, err)
	return dir, run
}

func rows(t *testing.T, text []byte) []map[string]string {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	check.Err(t, err)
	var out []map[string]string
	for _, row := range all[1:] {
		fields := map[string]string{}
		for i, name := range all[0] {
			fields[name] = row[i]
		}
		out = append(out, fields)
	}
	return out
}

func file(t *testing.T, dir, name string) []map[string]string {
	t.Helper()
	text := check.Read(t, filepath.Join(dir, name))
	return rows(t, text)
}

// An export has every row of the run folder, column by column as it stands there, and more columns.
func TestExportsAreTheFoldersRows(t *testing.T) {
	browser := comparetest.Measured(comparetest.Browser(2), comparetest.Page())
	browser.Warmup = true
	native := comparetest.Native(2)
	native.Scored = record.Scoring{Reference: native.Cell.ID, PromptIDs: []int{1}, Top: 2}
	top := []record.Candidate{{ID: 7, LogProb: -0.1}, {ID: 8, LogProb: -3}}
	native.Scores = []record.Score{{Forced: 7, LogProb: -0.1, Top: top}, {Forced: 9, LogProb: -5, Top: top},
		{Forced: 9, LogProb: math.NaN(), Top: top}} // the last one is too small to report
	dir, run := opened(t, browser, native)
	for _, table := range tables.Of(compare.Runs(run), run) {
		if table.Name == "summary" {
			continue
		}
		var b bytes.Buffer
		check.Err(t, tables.CSV(&b, table))
		got, want := rows(t, b.Bytes()), file(t, dir, table.Name+".csv")
		if len(got) != len(want) || len(want) == 0 {
			t.Errorf("%s: %d rows, the folder has %d", table.Name, len(got), len(want))
			continue
		}
		for i := range want {
			for name, field := range want[i] {
				if !equal(got[i][name], field) {
					t.Fatalf("%s, row %d, %s is %q, in the folder %q", table.Name, i+1, name, got[i][name], field)
				}
			}
			if got[i]["run"] != "0" || got[i]["engine"] == "" || got[i]["phase"] == "" &&
				table.Name != "totals" && table.Name != "scores" {
				t.Fatalf("%s, row %d: %v", table.Name, i+1, got[i])
			}
		}
	}
}

// equal takes numbers that are written otherwise for the same.
func equal(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return a == b || errX == nil && errY == nil && x == y
}

// The page's heap stands among the readings of processes, in order of time, as tools that read heap_used_mb expect it.
func TestHeapIsAmongSamples(t *testing.T) {
	_, run := opened(t, comparetest.Browser(1))
	a := run.Attempts[0]
	a.Sources[99] = record.Source{Role: "page", Method: "performance_metrics", PID: 7}
	for i, s := range a.Samples {
		if i%5 == 0 {
			a.Metrics = append(a.Metrics,
				record.MetricRow{Source: 99, NS: s.NS + 1, Name: "js_heap_used_bytes", Value: 3 << 20},
				record.MetricRow{Source: 99, NS: s.NS + 1, Name: "nodes_count", Value: 1})
		}
	}
	var b bytes.Buffer
	check.Err(t, tables.CSV(&b, tables.Of(compare.Runs(run), run)[1]))
	heap, last := 0, int64(math.MinInt64)
	for _, row := range rows(t, b.Bytes()) {
		at, err := strconv.ParseInt(row["t_ns"], 10, 64)
		if err != nil || at < last {
			t.Fatalf("%v after %d", row, last)
		}
		last = at
		if row["heap_used_mb"] != "" {
			heap++
			if row["heap_used_mb"] != "3" || row["rss_mb"] != "" || row["role"] != "page" || row["pid"] != "7" {
				t.Fatalf("a reading of the heap: %v", row)
			}
		}
	}
	if want := (len(a.Samples) + 4) / 5; heap != want {
		t.Errorf("%d readings of the heap, want %d", heap, want)
	}
}

// What is absent is an empty field, and figures are whole: nothing is rounded that the result has not rounded.
func TestSummary(t *testing.T) {
	lost := comparetest.Native(2)
	lost.Cell.ID, lost.Cell.Engine, lost.Failing = 9, `lost, "all" of it`+"\nreally",
		map[int]record.Class{1: record.OOM, 2: record.Crash}
	_, run := opened(t, comparetest.Browser(7), comparetest.Native(2), lost)
	res := compare.Runs(run)
	var b bytes.Buffer
	check.Err(t, tables.CSV(&b, tables.Of(res)[0]))
	got := rows(t, b.Bytes())
	if len(got) != 3 {
		t.Fatalf("%d rows of 3 cells", len(got))
	}
	number := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
	peak, ttft := res.Cells[0].Figure(figure.PeakPSS), res.Cells[1].Figure(figure.TTFT)
	for what, ok := range map[string]bool{
		"median": number(got[0]["peak_pss_mb"]) == peak.Center() && number(got[1]["ttft_ms"]) == ttft.Center(),
		"interval": number(got[0]["peak_pss_mb_lo"]) == peak.Interval.Lo &&
			number(got[0]["peak_pss_mb_hi"]) == peak.Interval.Hi && got[0]["peak_pss_mb_n"] == "7",
		"too few": got[1]["ttft_ms_lo"] == "" && got[1]["ttft_ms_hi"] == "" && got[1]["ttft_ms_n"] == "2",
		"nothing": got[2]["peak_pss_mb"] == "" && got[2]["peak_pss_mb_n"] == "0" &&
			got[2]["launches_counted"] == "0" && got[2]["failures"] == "oom;crash",
		"a name":      got[2]["engine"] == `lost, "all" of it really`,
		"no baseline": got[1]["baseline_pss_mb"] == "",
		"warnings": strings.Contains(got[1]["warnings"], "too-few-launches") &&
			!strings.Contains(got[0]["warnings"], "too-few-launches"),
	} {
		if !ok {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// A figure that somebody adds gets a column.
func TestEveryFigureHasAColumn(t *testing.T) {
	resident := comparetest.Served(6)
	resident.NoPSS = true
	_, run := opened(t, comparetest.Measured(comparetest.Browser(6), comparetest.Page()), comparetest.Native(6),
		resident)
	res := compare.Runs(run)
	var all [][]tables.Value
	check.Err(t, tables.Of(res, run)[0].Rows(func(row []tables.Value) error {
		all = append(all, slices.Clone(row))
		return nil
	}))
	for i, c := range res.Cells {
		for _, f := range slices.Concat(c.Figures, c.Sampler) {
			if f.Known() && !slices.ContainsFunc(
				all[i], func(v tables.Value) bool { return v.Known && v.Number == f.Center() }) {
				t.Errorf("%s: no column of summary.csv has %s: give it one in reports/tables/summary.go", c.Label,
					f.Name)
			}
		}
	}
}
