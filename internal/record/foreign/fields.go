package foreign

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// layouts are the forms of timestamps: without a zone, and with one, as `llmparity watch` writes them. Each accepts
// fractions of a second.
var layouts = []struct{ layout, name string }{
	{"2006-01-02T15:04:05Z07:00", "ISO 8601 with a zone"},
	{"2006-01-02T15:04:05", "ISO 8601 without a zone, read as UTC"},
}

// time parses a timestamp. All must have the same form as the first.
func (f *file) time(line int, fields []string) (int64, error) {
	text, _ := f.field(fields, timeColumn)
	for _, l := range layouts {
		if _, err := nanoseconds(l.layout, text); err == nil && f.layout == "" {
			f.layout, f.times = l.layout, l.name
		}
	}
	if f.layout == "" {
		return 0, f.fault(line, timeColumn, "write ISO 8601 such as 2024-01-15T10:30:00.123",
			"%.40q is not a time", text)
	}
	ns, err := nanoseconds(f.layout, text)
	if err != nil {
		return 0, f.fault(line, timeColumn, "write all timestamps in one form",
			"%.40q is not in %s, the form of the first timestamp", text, f.times)
	}
	return ns, nil
}

// nanoseconds parses a time to nanoseconds since 1970.
func nanoseconds(layout, text string) (int64, error) {
	t, err := time.Parse(layout, text)
	if err == nil && (t.Year() < 1970 || t.Year() > 2200) { // else nanoseconds overflow 64 bits
		return 0, strconv.ErrRange
	}
	return t.UnixNano(), err
}

// who returns the process of a row; without columns all rows belong to one.
func (f *file) who(line int, fields []string) (who, error) {
	var w who
	var err error
	if text, ok := f.field(fields, pidColumn); ok && text != "" {
		if w.pid, err = strconv.Atoi(text); err != nil || w.pid < 0 {
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

// size parses MiB; NaN if the column or its content is missing.
func (f *file) size(line int, fields []string, column string) (float64, error) {
	text, ok := f.field(fields, column)
	if !ok || text == "" {
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
