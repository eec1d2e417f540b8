package tables

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/compare"
	"llmparity/internal/record"
)

// CSV writes a table of an export: a header, and lines that hold a row each.
func CSV(w io.Writer, t Table) error {
	to := csv.NewWriter(w)
	fields := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		fields[i] = c.Name
	}
	err := to.Write(fields)
	if err == nil {
		err = t.Rows(func(row []Value) error {
			for i, v := range row {
				fields[i] = v.field(t.Columns[i].Kind)
			}
			return to.Write(fields)
		})
	}
	if err == nil {
		to.Flush()
		err = to.Error()
	}
	if err != nil {
		return fmt.Errorf("writing %s.csv: %w", t.Name, err)
	}
	return nil
}

// lineBreaks become spaces: readers can rely on a row being a line.
var lineBreaks = strings.NewReplacer("\n", " ", "\r", " ")

// field writes a value as CSV has it; an absent one is an empty field.
func (v Value) field(k Kind) string {
	switch {
	case !v.Known:
		return ""
	case k == Text:
		return lineBreaks.Replace(v.Text)
	case k == Number:
		return strconv.FormatFloat(v.Number, 'f', -1, 64)
	case k == Truth:
		return strconv.FormatBool(v.Int != 0)
	case k == Time:
		return time.UnixMicro(v.Int).In(v.zone).Format("2006-01-02T15:04:05.000000Z07:00")
	}
	return strconv.FormatInt(v.Int, 10)
}

// Summary writes summary.csv, a row a cell, with the columns that it needs.
func Summary(w io.Writer, res *compare.Result) error {
	t, err := Needed(Of(res)[0])
	if err != nil {
		return err
	}
	return CSV(w, t)
}

// Samples writes samples.csv, a row a reading of memory.
func Samples(w io.Writer, res *compare.Result, runs ...*record.Run) error {
	all := Of(res, runs...)
	return CSV(w, all[slices.IndexFunc(all, func(t Table) bool { return t.Name == "samples" })])
}
