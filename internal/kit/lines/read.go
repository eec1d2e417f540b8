package lines

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"llmparity/internal/kit/fault"
)

// Each calls f for every complete line of a file; f must not keep the line. cut says that the last line has no end.
func Each(path string, f func(line []byte) error) (cut bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 256<<10), math.MaxInt)
	lines.Split(func(data []byte, atEOF bool) (advance int, line []byte, err error) {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			return i + 1, data[:i], nil
		}
		cut = atEOF && len(data) > 0
		return 0, nil, nil
	})
	n := 1
	for ; err == nil && lines.Scan(); n++ {
		err = f(lines.Bytes())
	}
	if err == nil {
		err = lines.Err()
	}
	if err != nil {
		return false, fault.Wrap(fault.BadRecord, err, "", "%s line %d", path, n-1)
	}
	return cut, nil
}

// EachRow reads a CSV file in which each row is one line. take reads the fields of these columns in their order.
func EachRow(path string, columns []string, take func(*Row) error) (cut bool, err error) {
	r := Row{texts: map[string]string{}}
	width := 0 // fields of the header
	return Each(path, func(line []byte) error {
		if err := r.split(line); err != nil {
			return err
		}
		switch {
		case width == 0:
			width = len(r.fields)
			return r.locate(columns)
		case len(r.fields) != width:
			return fmt.Errorf("%d fields, but the header has %d", len(r.fields), width)
		}
		return take(&r)
	})
}

// block is how much is read at once to find the end of a file.
const block = 64 << 10

// wholeLines returns where the last complete line ends: a kill may have cut a line, and a power failure may leave
// zeros.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	buffer := make([]byte, block)
	for end := info.Size(); end > 0; {
		start := max(0, end-block)
		part := buffer[:end-start]
		if _, err := f.ReadAt(part, start); err != nil {
			return 0, err
		}
		if zero := bytes.IndexByte(part, 0); zero >= 0 {
			end = start + int64(zero)
			continue
		}
		if newline := bytes.LastIndexByte(part, '\n'); newline >= 0 {
			return start + int64(newline) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// A long run has millions of rows. So columns are located once for each file, and a row without quotes is read without
// allocating.

// column is the position of a field; negative if the file lacks it, which is an error when it is read.
type column struct {
	name string
	at   int
}

// Row is a CSV row, valid until the next one. Each call reads the field of the next column. It keeps its first error,
// so that several fields can be read before checking.
type Row struct {
	Err     error // the first error
	columns []column
	next    int // index in columns
	fields  [][]byte
	texts   map[string]string // all that were read
}

// locate finds the columns in the header.
func (r *Row) locate(columns []string) error {
	is := func(name string) func([]byte) bool { return func(f []byte) bool { return string(f) == name } }
	for i, name := range r.fields {
		if slices.ContainsFunc(r.fields[:i], is(string(name))) {
			return fmt.Errorf("duplicate column %q", name)
		}
	}
	for _, name := range columns {
		r.columns = append(r.columns, column{name, slices.IndexFunc(r.fields, is(name))})
	}
	return nil
}

func (r *Row) fail(format string, a ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf(format, a...)
	}
}

// split reads a line into the row.
func (r *Row) split(line []byte) error {
	r.fields, r.next, r.Err = r.fields[:0], 0, nil
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

// field returns the next field and the name of its column.
func (r *Row) field() (s []byte, name string) {
	c := r.columns[r.next]
	r.next++
	if c.at >= 0 {
		return r.fields[c.at], c.name
	}
	r.fail("missing column %q", c.name)
	return nil, c.name
}

// Text reads a text. Equal ones share their memory.
func (r *Row) Text() string {
	s, _ := r.field()
	if known, ok := r.texts[string(s)]; ok {
		return known
	}
	r.texts[string(s)] = string(s)
	return r.texts[string(s)]
}

// Integer reads a whole number.
func (r *Row) Integer() int64 {
	s, name := r.field()
	n, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		r.fail("column %s: %q is not a whole number", name, s)
	}
	return n
}

// Int reads a whole number.
func (r *Row) Int() int { return int(r.Integer()) }

// Size reads a size in MiB; NaN if the field is empty.
func (r *Row) Size() float64 { return r.number("a size in MiB", true, 0) }

// Number reads a finite number.
func (r *Row) Number() float64 { return r.number("a number", false, -math.MaxFloat64) }

// Perhaps reads a finite number; NaN if the field is empty.
func (r *Row) Perhaps() float64 { return r.number("a number", true, -math.MaxFloat64) }

func (r *Row) number(what string, perhaps bool, least float64) float64 {
	s, name := r.field()
	if perhaps && len(s) == 0 {
		return math.NaN()
	}
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil || !(f >= least) || math.IsInf(f, 0) {
		r.fail("column %s: %q is not %s", name, s, what)
	}
	return f
}
