package reports_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
)

// A figure for paper says which files and columns it is drawn from: those of its quantity, which a record has.
func TestFiguresNameTheirSources(t *testing.T) {
	var engines []comparetest.Engine
	for i := range 3 {
		e := comparetest.Measured(comparetest.Browser(2), comparetest.Page())
		e.Cell.ID, e.Cell.Model.Context = i+1, 256<<i
		e.Info.Policy = map[string]string{"kv_dtype": "f32", "weights_dtype": "f32", "context": fmt.Sprint(256 << i)}
		e.Inside.KVReserved <<= i
		e.Cell.Traffic = nil
		engines = append(engines, e)
	}
	for n, change := range []func(*comparetest.Engine){func(*comparetest.Engine) {},
		func(e *comparetest.Engine) { e.NoPSS = true }} {
		all := slices.Clone(engines)
		for i := range all {
			change(&all[i])
		}
		dir := comparetest.Write(t, t.TempDir(), "sources", all...)
		run := comparetest.Open(t, dir)
		figures, err := colours.Figures(true, compare.Runs(run), run)
		check.Err(t, err)
		seen := map[string]bool{}
		for _, f := range figures {
			if !strings.Contains(f.Name, "growth-context") {
				continue
			}
			for part, has := range map[string]string{"kv cache, reserved": "metrics.csv: name (kv_reserved_bytes)",
				"peak rss sum": "totals.csv: t_ns, method, rss_sum_mb;",
				"peak memory":  "totals.csv: t_ns, method, pss_mb;"} {
				if !strings.Contains(strings.ToLower(f.Title), part) {
					continue
				}
				seen[part] = true
				if !strings.HasPrefix(f.Source, has) || !strings.HasSuffix(f.Source, "cell (model)") {
					t.Errorf("%s is drawn from %s, want %s", f.Title, f.Source, has)
				}
			}
			hasColumns(t, dir, f.Source)
		}
		want := map[int]string{0: "peak memory", 1: "peak rss sum"}[n]
		if !seen[want] || !seen["kv cache, reserved"] {
			t.Errorf("no figure of %s: %v of %d", want, seen, len(figures))
		}
	}
}

// hasColumns fails unless a record has the CSV files and columns that a source names.
func hasColumns(t *testing.T, dir, source string) {
	t.Helper()
	for part := range strings.SplitSeq(source, "; ") {
		file, columns, _ := strings.Cut(part, ": ")
		if !strings.HasSuffix(file, ".csv") {
			continue
		}
		f, err := os.Open(filepath.Join(dir, file))
		check.Err(t, err)
		head, err := csv.NewReader(f).Read()
		check.Err(t, err)
		check.Err(t, f.Close())
		for column := range strings.SplitSeq(columns, ", ") {
			column, _, _ = strings.Cut(column, " (")
			if column = strings.TrimSuffix(column, ")"); !slices.Contains(head, column) {
				t.Errorf("%s has no column %q, which %q names", file, column, source)
			}
		}
	}
}
