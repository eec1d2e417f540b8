//go:build !race

package reports_test

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/foreign"
	"llmparity/internal/record"
	"llmparity/internal/recount"
	"llmparity/reports"
)

// foreigners are files that other programs wrote, by their names.
func foreigners(t *testing.T) map[string]string {
	t.Helper()
	example, err := os.ReadFile(filepath.Join("..", "internal", "foreign", "testdata", "profiler.csv"))
	if err != nil {
		t.Fatal(err)
	}
	var apart, watched strings.Builder
	apart.WriteString("\ufeffVMS_mb, RSS_MB ,more,Timestamp,PID\r\n")
	for i := range 40 {
		wave := 300 + 200*math.Sin(float64(i)/3)
		fmt.Fprintf(&apart, "1,%.2f,x,%d,%d\r\n", wave, 1705314600123+int64(i)*70, 7+i%3)
	}
	apart.WriteString("1,9999,x,17053146")
	watched.WriteString("timestamp,label,pid,start,name,rss_mb,vms_mb,heap_used_mb\n")
	for i := range 30 {
		rss := []string{"120.5", "", "NaN", "131.25", "90"}[i%5]
		heap := []string{"", "4.125", "null", "8.5"}[i%4]
		at := 1705314600.25 + 0.2*float64(i)
		if i%7 == 3 {
			at -= 0.5
		}
		fmt.Fprintf(&watched, "%.6f,\"page, %d\",%d.0,%d,renderer,%s,-,%s\n", at, i%2, 4000, 90+i/20, rss, heap)
		fmt.Fprintf(&watched, "%.6f,\"page, %d\",4001,17,gpu,%.3f,900,\n", at, i%2, 50+float64(i*i%17))
		if i%11 == 5 { // twice at one time
			fmt.Fprintf(&watched, "%.6f,\"page, %d\",4001,17,gpu,200,900,\n", at, i%2)
		}
	}
	return map[string]string{
		"profiler.csv": string(example),
		"apart.csv":    apart.String(),
		"watched.csv":  watched.String(),
		"heap.csv":     "timestamp,heap_used_mb\n2024-01-15T12:30:00.5+02:00,12.5\n2024-01-15T10:30:01Z,96.25\n2024-01-15 10:30:02Z,3\n",
		"one.csv":      "timestamp,label,rss_mb\n1705314600123456789,llama,5.5\n",
		"another.csv":  "timestamp,label,rss_mb\n1705314600123456,llama,6.5\n1.705314601e15,llama,4\n",
	}
}

func written(t *testing.T, names ...string) []string {
	t.Helper()
	dir, all := t.TempDir(), foreigners(t)
	var out []string
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(all[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		out = append(out, path)
	}
	return out
}

// openedAll opens folders and other programs' files.
func openedAll(t *testing.T, paths []string) []*record.Run {
	t.Helper()
	var runs []*record.Run
	for _, path := range paths {
		open := record.Open
		if strings.HasSuffix(path, ".csv") {
			open = foreign.Open
		}
		run, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	return runs
}

// beside is a run of two engines, one of which nobody may read PSS of.
func beside(t *testing.T) string {
	a, b := comparetest.Browser(7), comparetest.Native(6)
	a.Device, a.Vary, b.Vary, b.NoPSS = b.Device, 0.04, 0.04, true
	return comparetest.Write(t, t.TempDir(), "mine", a, b)
}

// What another program wrote down is shown as its file has it, by itself and beside our own runs; ratios that are asked
// for are of that.
func TestRowsOfOtherProgramsAreThoseOfTheRecord(t *testing.T) {
	for name, paths := range map[string]func() []string{
		"alone":            func() []string { return written(t, "profiler.csv") },
		"processes apart":  func() []string { return written(t, "apart.csv") },
		"watched":          func() []string { return written(t, "watched.csv") },
		"heap alone":       func() []string { return written(t, "heap.csv") },
		"two of one label": func() []string { return written(t, "one.csv", "another.csv") },
		"all of them": func() []string {
			return written(t, "profiler.csv", "apart.csv", "watched.csv", "heap.csv", "one.csv", "another.csv")
		},
		"beside a run": func() []string {
			return append([]string{beside(t)},
				written(t, "profiler.csv", "watched.csv")...)
		},
		"before a run": func() []string { return append(written(t, "apart.csv"), beside(t)) },
		"between runs of three": func() []string {
			return append([]string{beside(t)},
				append(written(t, "watched.csv"), beside(t))...)
		},
	} {
		for _, different := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %v", name, different), func(t *testing.T) {
				o := compare.Defaults()
				o.AllowDifferent = different
				all := paths()
				runs := openedAll(t, all)
				res := compare.With(o, runs...)
				asked := 0
				for _, c := range res.Comparisons {
					if res.Cells[c.A].Spec.Model.Format == record.Foreign ||
						res.Cells[c.B].Spec.Model.Format == record.Foreign {
						asked += len(c.Ratios)
					}
				}
				// there one has a heap alone, the other none
				if want := different && len(res.Cells) > 1 && name != "alone"; (asked > 0) != want {
					t.Errorf("%d ratios of rows of other programs", asked)
				}
				page := rendered(t, func(w io.Writer) error { return reports.HTML(w, res, runs...) })
				recount.Check(t, []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, res) })), page,
					all...)
			})
		}
	}
}

// A report that says something else than the files is found out.
func TestRowsOfOtherProgramsToldWronglyAreFound(t *testing.T) {
	paths := append(append(written(t, "profiler.csv", "watched.csv"), beside(t)), written(t, "apart.csv")...)
	runs, work := openedAll(t, paths), recount.From(t, paths...)
	o := compare.Defaults()
	o.AllowDifferent = true
	page := rendered(t, func(w io.Writer) error { return reports.HTML(w, compare.With(o, runs...), runs...) })
	fig := func(r *compare.Result, cell int, name string) *compare.Figure {
		for i := range r.Cells[cell].Figures {
			if f := &r.Cells[cell].Figures[i]; f.Name == name && f.Known() {
				return f
			}
		}
		t.Fatalf("cell %d has no %s", cell, name)
		return nil
	}
	ratio := func(r *compare.Result) *compare.Ratio { return &r.Comparisons[len(r.Comparisons)-1].Ratios[0] }
	engine := func(r *compare.Result, cell int) *record.EngineInfo { // the record keeps its own
		e := *r.Cells[cell].Engine
		e.Parts = map[string]string{"rows": e.Parts["rows"]}
		r.Cells[cell].Engine = &e
		return &e
	}
	warning := func(r *compare.Result, code string) *compare.Warning {
		for i := range r.Warnings {
			if r.Warnings[i].Code == code {
				return &r.Warnings[i]
			}
		}
		t.Fatalf("there is no warning %s", code)
		return nil
	}
	for says, change := range map[string]func(*compare.Result){
		"ollama-run1, profiler.csv: peak_rss_sum, median": func(
			r *compare.Result) {
			*fig(r, 0, figure.PeakRSS).Median += 0.01
		},
		"webllm-run1, profiler.csv: peak_js_heap, launch": func(
			r *compare.Result) {
			fig(r, 1, figure.PeakHeap).Values[0].Value += 0.01
		},
		"page, 0, watched.csv: peak_rss_sum, n is": func(
			r *compare.Result) {
			fig(r, 2, figure.PeakRSS).N++
		},
		"page, 1, watched.csv: peak_js_heap: the interval is": func(
			r *compare.Result) {
			fig(r, 3, figure.PeakHeap).Interval = &stats.Interval{Lo: 1, Hi: 2}
		},
		"has no peak_js_heap": func(
			r *compare.Result) {
			fig(r, 1, figure.PeakHeap).Name = figure.PeakRSS
		},
		"work it out here": func(
			r *compare.Result) {
			fig(r, 1, figure.PeakHeap).Name = figure.PeakPSS
		},
		"launches counted is": func(
			r *compare.Result) {
			r.Cells[2].Launches.Counted++
		},
		"SHA-256 is": func(
			r *compare.Result) {
			engine(r, 0).SHA256 = "0badcafe"
		},
		"file is": func(
			r *compare.Result) {
			engine(r, 3).Version = "profiler.csv"
		},
		"rows is": func(
			r *compare.Result) {
			engine(r, 1).Parts["rows"] = "4"
		},
		"is called": func(r *compare.Result) { r.Cells[1].Label = "ollama" },
		"there is a device": func(
			r *compare.Result) {
			r.Cells[0].Device = r.Cells[4].Device
		},
		"the run of watched.csv is": func(
			r *compare.Result) {
			r.Runs[1].Name = "profiler.csv"
		},
		"nanoseconds from the begin of profiler.csv is": func(
			r *compare.Result) {
			r.Runs[0].Started = r.Runs[0].Started.Add(1)
		},
		"over apart, apart.csv is":             func(r *compare.Result) { *ratio(r).Ratio += 0.001 },
		"should not be there, or not unmarked": func(r *compare.Result) { ratio(r).Different = "" },
		"the report has no peak_rss_sum of llamacpp": func(
			r *compare.Result) {
			r.Comparisons = r.Comparisons[:len(r.Comparisons)-1]
		},
		"a ratio of what was not worked out again": func(
			r *compare.Result) {
			ratio(r).Figure = figure.PeakPSS
		},
		"p is":        func(r *compare.Result) { ratio(r).Raw /= 2 },
		"p corrected": func(r *compare.Result) { ratio(r).P /= 2 },
		"not-a-number vms_mb: it says": func(r *compare.Result) {
			warning(r, "not-a-number").Text = "vms_mb: 3 fields hold no number and are left out, the first in line 6"
		},
		"clock-backwards , warnings is": func(
			r *compare.Result) {
			warning(r, "clock-backwards").Code = "clock"
		},
		"the warning foreign-rows is in the report: false": func(
			r *compare.Result) {
			warning(r, "foreign-rows").Text = ""
		},
		"the warning cut is in the report: true; worked": func(r *compare.Result) {
			*warning(r, "foreign-rows") = compare.Warning{Warning: record.Warning{Code: "cut", Text: "profiler.csv"},
				Where: "run profiler.csv"}
		},
		"nobody says that processes were read apart": func(
			r *compare.Result) {
			warning(r, "readings-apart").Code = "apart"
		},
	} {
		res := compare.With(o, runs...)
		change(res)
		found := &deaf{TB: t}
		work.Check(found, []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, res) })), page)
		found.hears(t, says)
	}
	// And a page.
	text := []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, compare.With(o, runs...)) }))
	for says, wrong := range map[string]string{
		"of rows of another program":     strings.Replace(page, ">0.300<", ">0.400<", 1),
		"says nothing of rows of anothe": strings.ReplaceAll(page, "highest RSS sum (MiB)", "RSS (MiB)"),
	} {
		found := &deaf{TB: t}
		work.Check(found, text, wrong)
		found.hears(t, says)
	}
}
