package reports_test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/internal/record/foreign"
)

// foreigners are files that other programs wrote, by their names.
func foreigners(t *testing.T) map[string]string {
	t.Helper()
	example := check.Read(t, filepath.Join("..", "internal", "record", "foreign", "testdata", "profiler.csv"))
	var apart, watched strings.Builder
	iso := func(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000") }
	apart.WriteString("\ufeffvms_mb,rss_mb,more,timestamp,pid\r\n")
	for i := range 40 {
		wave := 300 + 200*math.Sin(float64(i)/3)
		fmt.Fprintf(&apart, "1,%.2f,x,%s,%d\r\n", wave, iso(1705314600_123e6+int64(i)*70e6), 7+i%3)
	}
	apart.WriteString("1,9999,x,2024-01-")
	watched.WriteString("timestamp,label,pid,start,name,rss_mb,vms_mb,heap_used_mb\n")
	for i := range 30 {
		rss := []string{"120.5", "", "", "131.25", "90"}[i%5]
		heap := []string{"", "4.125", "", "8.5"}[i%4]
		ns := 1705314600_250e6 + int64(i)*200e6
		if i%7 == 3 {
			ns -= 500e6
		}
		at := iso(ns)
		fmt.Fprintf(&watched, "%s,\"page, %d\",%d,%d,renderer,%s,,%s\n", at, i%2, 4000, 90+i/20, rss, heap)
		fmt.Fprintf(&watched, "%s,\"page, %d\",4001,17,gpu,%.3f,900,\n", at, i%2, 50+float64(i*i%17))
		if i%11 == 5 { // twice at one time
			fmt.Fprintf(&watched, "%s,\"page, %d\",4001,17,gpu,200,900,\n", at, i%2)
		}
	}
	return map[string]string{
		"profiler.csv": string(example),
		"apart.csv":    apart.String(),
		"watched.csv":  watched.String(),
	}
}

// openedAll opens folders and other programs' files.
func openedAll(t *testing.T, paths []string) []*record.Run {
	t.Helper()
	var runs []*record.Run
	for _, path := range paths {
		if !strings.HasSuffix(path, ".csv") {
			runs = append(runs, comparetest.Open(t, path))
			continue
		}
		run, err := foreign.Open(path)
		check.Err(t, err)
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

// What other programs wrote down, by itself and beside a run of ours.
func TestFrozenRowsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	dir := check.Tree(t, t.TempDir(), foreigners(t))
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, paths := range map[string][]string{
		"foreign-profiler":     {at("profiler.csv")},
		"foreign-beside-a-run": {at("profiler.csv"), at("watched.csv"), beside(t), at("apart.csv")},
	} {
		t.Run(name, func(t *testing.T) {
			runs := openedAll(t, paths)
			o := compare.Defaults()
			o.AllowDifferent = true
			res := compare.With(o, runs...)
			if name != "foreign-beside-a-run" {
				frozen(t, name, res)
				return
			}
			frozen(t, name, res, "runs", "comparability", "figures", "engine_info", "comparisons", "warnings")
		})
	}
}
