package record

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
)

// A record of hours has millions of rows. So a file's columns are found once, and a row's fields are read where they
// lie in the line: nothing is allocated for a row without quotes.

// header tells where a CSV file has which column.
type header map[string]int

// column is where a file has a field; below 0: nowhere, which is wrong once it is asked for.
type column struct {
	name string
	at   int
}

func newHeader(fields [][]byte) (header, error) {
	h := make(header, len(fields))
	for i, name := range fields {
		if _, twice := h[string(name)]; twice {
			return nil, fmt.Errorf("there are two columns %q", name)
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

// there tells whether a file has the column; older ones lack some.
func (c column) there() bool { return c.at >= 0 }

// row is a CSV row, valid until the next. Its first fault sticks, so that several fields can be read in a row.
type row struct {
	fields [][]byte
	err    error
}

func (r *row) fail(format string, a ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, a...)
	}
}

// split takes the place of the row before.
func (r *row) split(line []byte) error {
	r.fields, r.err = r.fields[:0], nil
	if bytes.IndexByte(line, '"') >= 0 { // which few labels have
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

// text is a field as it stands; who keeps it copies it.
func (r *row) text(c column) []byte {
	if c.at < 0 {
		r.fail("there is no column %q", c.name)
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

// size reads MiB; an empty field is NaN.
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

// names keeps each of a few texts once.
type names map[string]string

func (n names) of(s []byte) string {
	if known, ok := n[string(s)]; ok {
		return known
	}
	n[string(s)] = string(s)
	return n[string(s)]
}
