package foreign

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
)

// epochs are the units of times since 1970, with the smallest number for each. They don't overlap from 1973 to 5138.
var epochs = []struct {
	least float64
	unit  int64 // nanoseconds
	name  string
}{{1e17, 1, "nanoseconds"}, {1e14, 1e3, "microseconds"}, {1e11, 1e6, "milliseconds"}, {1e8, 1e9, "seconds"}}

// layouts are the forms of ISO 8601 in use; each accepts fractions of a second.
var layouts = []struct{ layout, name string }{
	{"2006-01-02T15:04:05Z07:00", "ISO 8601 with a zone"},
	{"2006-01-02T15:04:05Z0700", "ISO 8601 with a zone"},
	{"2006-01-02T15:04:05", "ISO 8601 without a zone, read as UTC"},
}

// time parses a timestamp. All must have the same form as the first.
func (f *file) time(line int, fields []string) (int64, error) {
	text, _ := f.field(fields, timeColumn)
	if f.ns == nil {
		f.ns, f.times = readerOf(text)
	}
	if f.ns == nil {
		return 0, f.fault(line, timeColumn,
			"write seconds or milliseconds since 1970, or ISO 8601 such as 2024-01-15T10:30:00.123",
			"%.40q is not a time", text)
	}
	ns, err := f.ns(text)
	if err != nil {
		return 0, f.fault(line, timeColumn, "write all timestamps in one form",
			"%.40q is not in %s, the form of the first timestamp", text, f.times)
	}
	return ns, nil
}

// readerOf returns a parser for the form of a timestamp.
func readerOf(text string) (read func(string) (int64, error), name string) {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		for _, e := range epochs {
			if n >= e.least && n < 1e19 {
				return epoch(e.least, e.unit), e.name + " since 1970"
			}
		}
		return nil, ""
	}
	for _, l := range layouts {
		read := func(text string) (int64, error) {
			if len(text) > 10 && text[10] == ' ' {
				text = text[:10] + "T" + text[11:]
			}
			t, err := time.Parse(l.layout, text)
			if err == nil && (t.Year() < 1970 || t.Year() > 2200) { // else nanoseconds overflow 64 bits
				return 0, strconv.ErrRange
			}
			return t.UnixNano(), err
		}
		if _, err := read(text); err == nil {
			return read, l.name
		}
	}
	return nil, ""
}

// epoch parses whole units as integers, so that nanoseconds are exact. Numbers with an exponent are as exact as a
// float64.
func epoch(least float64, unit int64) func(string) (int64, error) {
	return func(text string) (int64, error) {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= least && n < least*1000 && n*float64(unit) < 7e18) {
			return 0, cmp.Or(err, strconv.ErrRange)
		}
		whole, fraction, _ := strings.Cut(text, ".")
		i, err := strconv.ParseInt(whole, 10, 64)
		part, err2 := strconv.ParseFloat("0."+fraction+"0", 64)
		if err != nil || err2 != nil || strings.ContainsAny(fraction, "eE") { // 1.7e9, 17e8
			return int64(math.Round(n * float64(unit))), nil
		}
		return i*unit + int64(math.Round(part*float64(unit))), nil
	}
}

// who returns the process of a row; without columns all rows belong to one.
func (f *file) who(line int, fields []string) (who, error) {
	var w who
	var err error
	if text, ok := f.field(fields, pidColumn); ok && text != "" {
		// pandas converts columns with gaps to floats
		if w.pid, err = strconv.Atoi(strings.TrimSuffix(text, ".0")); err != nil || w.pid < 0 {
			return w, f.fault(line, pidColumn, "write a pid, or nothing", "%.40q is not a pid", text)
		}
	}
	if text, ok := f.field(fields, startColumn); ok {
		w.start, _ = strconv.ParseUint(text, 10, 64) // another program's column of that name may differ
	}
	if text, ok := f.field(fields, nameColumn); ok {
		w.name = strings.Clone(text)
	}
	return w, nil
}

// largest is more MiB than any machine has.
const largest = 1 << 40

// size parses MiB; NaN if the column or its content is missing. It warns of words for a missing value.
func (f *file) size(line int, fields []string, column string) (float64, error) {
	text, ok := f.field(fields, column)
	if !ok || text == "" {
		return math.NaN(), nil
	}
	switch strings.ToLower(text) {
	case "nan", "na", "n/a", "null", "none", "-":
		f.note("not-a-number", column+": fields without a number are ignored; the first is in line", line)
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && v >= 0 && v < largest:
		return v, nil
	case strings.Contains(text, ","):
		return 0, f.fault(line, column, "write numbers with a point", "%.40q contains a comma", text)
	}
	return 0, f.fault(line, column, "fix or remove the line", "%.40q is not a size in MiB", text)
}
