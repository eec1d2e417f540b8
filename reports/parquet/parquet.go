// Package parquet writes tables as Parquet files: typed columns, compressed, for result sets that are too large for
// text. What is absent is null. It is a package of its own because the library behind it is large: only who writes such
// files has it.
//
// Rows are written group by group as they come. The files hold figures and no judgement: units and meanings of columns
// are in docs/reference/formats.md.
package parquet

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"

	"llmparity/reports/tables"
)

// group is how many rows are kept in memory before they are written.
const group = 32 << 10

// Write writes a table.
func Write(w io.Writer, t tables.Table) error {
	to := parquet.NewGenericWriter[any](w, schema(t), parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(group),
		parquet.PageBufferSize(64<<10), parquet.CreatedBy("llmparity", "", ""))
	batch := make([]parquet.Row, 0, 256)
	flush := func() error {
		_, err := to.WriteRows(batch)
		batch = batch[:0]
		return err
	}
	err := t.Rows(func(row []tables.Value) error {
		if len(batch) == cap(batch) {
			if err := flush(); err != nil {
				return err
			}
		}
		batch = batch[:len(batch)+1]
		last := &batch[len(batch)-1]
		*last = (*last)[:0]
		for i, v := range row {
			*last = append(*last, value(t.Columns[i].Kind, v, i))
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		return fmt.Errorf("writing %s.parquet: %w", t.Name, err)
	}
	return nil
}

// schema has the columns in the table's order, each of which may be null. The library takes an order from a struct
// alone.
func schema(t tables.Table) *parquet.Schema {
	fields := make([]reflect.StructField, len(t.Columns))
	for i, c := range t.Columns {
		of, options := reflect.TypeFor[int64](), ""
		switch c.Kind {
		case tables.Text:
			of, options = reflect.TypeFor[string](), ",dict"
		case tables.Number:
			of = reflect.TypeFor[float64]()
		case tables.Truth:
			of = reflect.TypeFor[bool]()
		case tables.Time:
			options = ",timestamp(microsecond)"
		}
		fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: of,
			Tag: reflect.StructTag(fmt.Sprintf(`parquet:"%s,optional%s"`, c.Name, options))}
	}
	return parquet.NewSchema(t.Name, parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface()))
}

func value(k tables.Kind, v tables.Value, column int) parquet.Value {
	if !v.Known {
		return parquet.NullValue().Level(0, 0, column)
	}
	var out parquet.Value
	switch k {
	case tables.Text:
		out = parquet.ByteArrayValue([]byte(strings.ToValidUTF8(v.Text, "\uFFFD"))) // readers refuse other bytes
	case tables.Number:
		out = parquet.DoubleValue(v.Number)
	case tables.Truth:
		out = parquet.BooleanValue(v.Int != 0)
	default:
		out = parquet.Int64Value(v.Int)
	}
	return out.Level(0, 1, column)
}
