package record

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
)

// A long run has millions of rows. So columns are located once for each file, and a row without quotes is read without
// allocating.

// header maps the columns of a CSV file to their positions.
type header map[string]int

// column is the position of a field; negative if the file lacks it, which is an error when it is read.
type column struct {
	name string
	at   int
}

func newHeader(fields [][]byte) (header, error) {
	h := make(header, len(fields))
	for i, name := range fields {
		if _, twice := h[string(name)]; twice {
			return nil, fmt.Errorf("duplicate column %q", name)
		}
		h[string(name)] = i
	}
	return h, nil
}

func (h header) column(name string) column {
	if i, ok := h[name]; ok {
		return column{name, i}
	}
	return column{name, -1}
}

// there reports whether the file has the column; older files lack some.
func (c column) there() bool { return c.at >= 0 }

// row is a CSV row, valid until the next one. It keeps its first error, so that several fields can be read before
// checking.
type row struct {
	fields [][]byte
	err    error
}

func (r *row) fail(format string, a ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, a...)
	}
}

// split reads a line into the row.
func (r *row) split(line []byte) error {
	r.fields, r.err = r.fields[:0], nil
	if bytes.IndexByte(line, '"') >= 0 {
		fields, err := csv.NewReader(bytes.NewReader(line)).Read()
		for _, f := range fields {
			r.fields = append(r.fields, []byte(f))
		}
		return err
	}
	for more := true; more; {
		var field []byte
		field, line, more = bytes.Cut(line, []byte(","))
		r.fields = append(r.fields, field)
	}
	return nil
}

// text returns a field, which is only valid until the next row.
func (r *row) text(c column) []byte {
	if c.at < 0 {
		r.fail("missing column %q", c.name)
		return nil
	}
	return r.fields[c.at]
}

func (r *row) integer(c column) int64 {
	s := r.text(c)
	n, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		r.fail("column %s: %q is not a whole number", c.name, s)
	}
	return n
}

// size reads a size in MiB; NaN if the field is empty.
func (r *row) size(c column) float64 {
	s := r.text(c)
	if len(s) == 0 {
		return math.NaN()
	}
	f, ok := finite(s)
	if !ok || f < 0 {
		r.fail("column %s: %q is not a size in MiB", c.name, s)
	}
	return f
}

func (r *row) number(c column) float64 {
	s := r.text(c)
	f, ok := finite(s)
	if !ok {
		r.fail("column %s: %q is not a number", c.name, s)
	}
	return f
}

func finite(s []byte) (float64, bool) {
	f, err := strconv.ParseFloat(string(s), 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// names interns strings.
type names map[string]string

func (n names) of(s []byte) string {
	if known, ok := n[string(s)]; ok {
		return known
	}
	n[string(s)] = string(s)
	return n[string(s)]
}
