package parquet_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"

	"github.com/parquet-go/parquet-go"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	ours "llmparity/reports/parquet"
	"llmparity/reports/tables"
)

// What is read back, by the columns' names, is what was written: types, order, nulls.
func TestRoundTrip(t *testing.T) {
	e := comparetest.Measured(comparetest.Browser(2), comparetest.Page())
	e.Failing = map[int]record.Class{2: record.OOM}
	native := comparetest.Native(7)
	native.Scored = record.Scoring{Reference: native.Cell.ID, PromptIDs: []int{1}, Top: 2}
	native.Scores = []record.Score{{Forced: 9, LogProb: math.NaN(),
		Top: []record.Candidate{{ID: 7, LogProb: -0.1}, {ID: 8, LogProb: -3}}}}
	run := comparetest.Run(t, "folder", e, native)
	for _, table := range tables.Of(compare.Runs(run), run) {
		var b bytes.Buffer
		check.Err(t, ours.Write(&b, table))
		file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
		check.Err(t, err)
		for i, f := range file.Schema().Fields() {
			if f.Name() != table.Columns[i].Name || !f.Optional() || f.Type().Kind() != kindOf(table.Columns[i].Kind) {
				t.Errorf("%s, column %d is %s %s, want %s", table.Name, i, f.Name(), f.Type(), table.Columns[i].Name)
			}
		}
		got, n := read(t, file), 0
		if err := table.Rows(func(row []tables.Value) error {
			for i, want := range row {
				if v := got[n][i]; !same(v, want, table.Columns[i].Kind) {
					return fmt.Errorf("%s, row %d, %s is %v, want %+v", table.Name, n+1, table.Columns[i].Name, v, want)
				}
			}
			n++
			return nil
		}); err != nil {
			t.Error(err)
		}
		if n != len(got) || n == 0 {
			t.Errorf("%s: %d rows were read of %d", table.Name, len(got), n)
		}
	}
}

func kindOf(k tables.Kind) parquet.Kind {
	switch k {
	case tables.Text:
		return parquet.ByteArray
	case tables.Number:
		return parquet.Double
	case tables.Truth:
		return parquet.Boolean
	}
	return parquet.Int64
}

func same(got parquet.Value, want tables.Value, k tables.Kind) bool {
	switch {
	case !want.Known:
		return got.IsNull()
	case got.IsNull():
		return false
	case k == tables.Text:
		return string(got.ByteArray()) == want.Text
	case k == tables.Number:
		return got.Double() == want.Number
	case k == tables.Truth:
		return got.Boolean() == (want.Int != 0)
	}
	return got.Int64() == want.Int
}

func read(t *testing.T, file *parquet.File) []parquet.Row {
	t.Helper()
	var out []parquet.Row
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		for {
			buffer := make([]parquet.Row, 100)
			n, err := rows.ReadRows(buffer)
			for _, r := range buffer[:n] {
				out = append(out, r.Clone())
			}
			if err != nil {
				break
			}
		}
		check.Err(t, rows.Close())
	}
	return out
}

// A long table is written without being kept: what it takes does not grow with it.
func TestRowsAreNotKept(t *testing.T) {
	const rows = 200_000
	columns := tables.Of(&compare.Result{})[1].Columns
	row := make([]tables.Value, len(columns))
	highest := uint64(0)
	table := tables.Table{Name: "samples", Columns: columns, Rows: func(emit func([]tables.Value) error) error {
		for n := range rows {
			for i, c := range columns {
				row[i] = tables.Value{Known: (n+i)%7 != 0, Text: "renderer", Int: int64(n * i),
					Number: math.Sqrt(float64(n + i))}
				if c.Kind == tables.Truth {
					row[i].Int = int64(n % 2)
				}
			}
			if err := emit(row); err != nil {
				return err
			}
			if n%50_000 == 49_999 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				highest = max(highest, m.HeapAlloc)
			}
		}
		return nil
	}}
	file, err := os.Create(t.TempDir() + "/samples.parquet")
	check.Err(t, err)
	defer file.Close()
	check.Err(t, ours.Write(file, table))
	if highest > 40<<20 {
		t.Errorf("%d MiB are held while %d rows are written", highest>>20, rows)
	}
	t.Logf("%d MiB held at most", highest>>20)
}
