package lines

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"

	"llmparity/internal/fault"
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

// EachRow reads a CSV file in which each row is one line. take gets the header and returns what reads a row.
func EachRow(path string, take func(Header) func(*Row) error) (cut bool, err error) {
	var r Row
	var add func(*Row) error
	columns := 0
	return Each(path, func(line []byte) error {
		if err := r.split(line); err != nil {
			return err
		}
		if add == nil {
			h, err := newHeader(r.fields)
			if err != nil {
				return err
			}
			columns, add = len(r.fields), take(h)
			return nil
		}
		if len(r.fields) != columns {
			return fmt.Errorf("%d fields, but the header has %d", len(r.fields), columns)
		}
		return add(&r)
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

// Header maps the columns of a CSV file to their positions.
type Header map[string]int

// Column is the position of a field; negative if the file lacks it, which is an error when it is read.
type Column struct {
	name     string
	at       int
	optional bool
}

func newHeader(fields [][]byte) (Header, error) {
	h := make(Header, len(fields))
	for i, name := range fields {
		if _, twice := h[string(name)]; twice {
			return nil, fmt.Errorf("duplicate column %q", name)
		}
		h[string(name)] = i
	}
	return h, nil
}

// Column returns a column by name.
func (h Header) Column(name string) Column {
	if i, ok := h[name]; ok {
		return Column{name: name, at: i}
	}
	return Column{name: name, at: -1}
}

// Optional returns a column that older files lack: its fields are then empty.
func (h Header) Optional(name string) Column {
	c := h.Column(name)
	c.optional = true
	return c
}

// Row is a CSV row, valid until the next one. It keeps its first error, so that several fields can be read before
// checking.
type Row struct {
	fields [][]byte
	Err    error // the first error
}

func (r *Row) fail(format string, a ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf(format, a...)
	}
}

// split reads a line into the row.
func (r *Row) split(line []byte) error {
	r.fields, r.Err = r.fields[:0], nil
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

// Text returns a field, which is only valid until the next row.
func (r *Row) Text(c Column) []byte {
	if c.at >= 0 {
		return r.fields[c.at]
	}
	if !c.optional {
		r.fail("missing column %q", c.name)
	}
	return nil
}

// Integer reads a whole number.
func (r *Row) Integer(c Column) int64 {
	s := r.Text(c)
	n, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		r.fail("column %s: %q is not a whole number", c.name, s)
	}
	return n
}

// Size reads a size in MiB; NaN if the field is empty.
func (r *Row) Size(c Column) float64 {
	s := r.Text(c)
	if len(s) == 0 {
		return math.NaN()
	}
	f, ok := finite(s)
	if !ok || f < 0 {
		r.fail("column %s: %q is not a size in MiB", c.name, s)
	}
	return f
}

// Number reads a finite number.
func (r *Row) Number(c Column) float64 {
	s := r.Text(c)
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

// Names interns strings.
type Names map[string]string

// Of returns the string equal to s.
func (n Names) Of(s []byte) string {
	if known, ok := n[string(s)]; ok {
		return known
	}
	n[string(s)] = string(s)
	return n[string(s)]
}
