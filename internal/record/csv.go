package record

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// A record of hours has millions of rows. So a file's columns are found once, and a row's fields are read where they
// lie in the line: nothing is allocated a row.

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
	fields   [][]byte
	unquoted []byte // what quoted fields hold
	err      error
}

func (r *row) fail(format string, a ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, a...)
	}
}

// split takes the place of the row before.
func (r *row) split(line []byte) error {
	r.fields, r.unquoted, r.err = r.fields[:0], r.unquoted[:0], nil
	if bytes.IndexByte(line, '"') >= 0 {
		return r.splitQuoted(line)
	}
	for {
		end := bytes.IndexByte(line, ',')
		if end < 0 {
			r.fields = append(r.fields, line)
			return nil
		}
		r.fields = append(r.fields, line[:end])
		line = line[end+1:]
	}
}

func (r *row) splitQuoted(line []byte) error {
	for {
		if !bytes.HasPrefix(line, []byte(`"`)) {
			field, rest, more := bytes.Cut(line, []byte(","))
			r.fields = append(r.fields, field)
			if !more {
				return nil
			}
			line = rest
			continue
		}
		begin := len(r.unquoted)
		line = line[1:]
		for {
			part, rest, closed := bytes.Cut(line, []byte(`"`))
			if !closed {
				return errors.New("a quoted field is not closed")
			}
			r.unquoted = append(r.unquoted, part...)
			line = rest
			if !bytes.HasPrefix(line, []byte(`"`)) {
				break
			}
			r.unquoted = append(r.unquoted, '"')
			line = line[1:]
		}
		r.fields = append(r.fields, r.unquoted[begin:])
		if len(line) == 0 {
			return nil
		}
		if line[0] != ',' {
			return errors.New("text after a quoted field")
		}
		line = line[1:]
	}
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
	if n, ok := digits(s); ok {
		return n
	}
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
	f, ok := number(s)
	if !ok || f < 0 {
		r.fail("column %s: %q is not a size in MiB", c.name, s)
	}
	return f
}

func (r *row) number(c column) float64 {
	s := r.text(c)
	f, ok := number(s)
	if !ok {
		r.fail("column %s: %q is not a number", c.name, s)
	}
	return f
}

// exactDigits is how many decimal digits a float64 takes without rounding, and so are the powers of ten up to that.
const exactDigits = 15

// digits reads a plain number of so few digits that it has no bounds to look at.
func digits(s []byte) (int64, bool) {
	if len(s) == 0 || len(s) > exactDigits {
		return 0, false
	}
	n := int64(0)
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// number reads a finite number. One of few digits is a whole number over a power of ten, both of them exact: their
// quotient is what strconv gives, which is asked for all the others.
func number(s []byte) (float64, bool) {
	if f, ok := fraction(s); ok {
		return f, true
	}
	f, err := strconv.ParseFloat(string(s), 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

func fraction(s []byte) (float64, bool) {
	point, n := -1, int64(0)
	for i, c := range s {
		switch {
		case c >= '0' && c <= '9':
			n = 10*n + int64(c-'0')
		case c == '.' && point < 0:
			point = i
		default:
			return 0, false
		}
	}
	if len(s) == 0 || len(s) > exactDigits+1 || point < 0 && len(s) > exactDigits || point == 0 || point == len(s)-1 {
		return 0, false
	}
	if point < 0 {
		return float64(n), true
	}
	return float64(n) / powers[len(s)-1-point], true
}

var powers = [exactDigits + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
	1e15}

// names keeps each of a few texts once.
type names map[string]string

func (n names) of(s []byte) string {
	if known, ok := n[string(s)]; ok {
		return known
	}
	n[string(s)] = string(s)
	return n[string(s)]
}
