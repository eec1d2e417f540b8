package foreign

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// epochs are the ways to count since 1970, by the least number that each has: from 1973 to the year 5138 none is
// another's.
var epochs = []struct {
	least, perSecond float64
	name             string
}{{1e17, 1e9, "nanoseconds"}, {1e14, 1e6, "microseconds"}, {1e11, 1e3, "milliseconds"}, {1e8, 1, "seconds"}}

// layouts are those of ISO 8601 that programs write; each takes a fraction of a second too.
var layouts = []struct{ layout, name string }{
	{"2006-01-02T15:04:05Z07:00", "ISO 8601 with a zone"},
	{"2006-01-02T15:04:05Z0700", "ISO 8601 with a zone"},
	{"2006-01-02T15:04:05", "ISO 8601 without a zone, read as UTC"},
}

// time reads a timestamp. What the first is written as, all are.
func (f *file) time(line int, fields []string) (int64, error) {
	text, _ := f.field(fields, timeColumn)
	if f.ns == nil {
		f.ns, f.times = readerOf(text)
	}
	if f.ns == nil {
		return 0, f.fault(line, timeColumn,
			"write seconds or milliseconds since 1970, or ISO 8601 such as 2024-01-15T10:30:00.123",
			"%.40q is no point in time", text)
	}
	ns, err := f.ns(text)
	if err != nil {
		return 0, f.fault(line, timeColumn, "write all timestamps in one way",
			"%.40q is no time in %s, as the first one is", text, f.times)
	}
	return ns, nil
}

// readerOf finds how a timestamp is written.
func readerOf(text string) (read func(string) (int64, error), name string) {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		for _, e := range epochs {
			if n >= e.least && n < 1e19 {
				return epoch(e.least, e.perSecond), e.name + " since 1970"
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
			if err == nil && (t.Year() < 1970 || t.Year() > 2200) { // beyond, nanoseconds have no place in 64 bits
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

// epoch reads whole units as integers, so that no nanosecond is lost where there are any. Numbers with an exponent are
// as exact as a float64.
func epoch(least, perSecond float64) func(string) (int64, error) {
	scale := int64(1e9 / perSecond)
	return func(text string) (int64, error) {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, err
		}
		if !(n >= least && n < least*1000) || n/perSecond > 7e9 {
			return 0, strconv.ErrRange
		}
		whole, fraction, _ := strings.Cut(text, ".")
		i, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || strings.Trim(fraction, "0123456789") != "" { // 1.7e9, 17e8
			return int64(math.Round(n * float64(scale))), nil
		}
		part, _ := strconv.ParseFloat("0."+fraction, 64)
		return i*scale + int64(math.Round(part*float64(scale))), nil
	}
}

// who reads which process a row is about; without the columns all are of one.
func (f *file) who(line int, fields []string) (who, error) {
	var w who
	var err error
	if text, ok := f.field(fields, pidColumn); ok && text != "" {
		// pandas makes floats of columns with gaps
		if w.pid, err = strconv.Atoi(strings.TrimSuffix(text, ".0")); err != nil || w.pid < 0 {
			return w, f.fault(line, pidColumn, "write a process's number, or nothing", "%.40q is no pid", text)
		}
	}
	if text, ok := f.field(fields, startColumn); ok {
		w.start, _ = strconv.ParseUint(text, 10, 64) // another program's column of that name says nothing
	}
	if text, ok := f.field(fields, nameColumn); ok {
		w.name = strings.Clone(text)
	}
	return w, nil
}

// largest is more MiB than any machine has.
const largest = 1 << 40

// size reads MiB; NaN where there is no column, nothing in it, or a word for nothing, which is warned of.
func (f *file) size(line int, fields []string, column string) (float64, error) {
	text, ok := f.field(fields, column)
	if !ok || text == "" {
		return math.NaN(), nil
	}
	switch strings.ToLower(text) {
	case "nan", "na", "n/a", "null", "none", "-":
		f.notices.count("not-a-number", column+": %d fields hold no number and are left out, the first in line %d",
			line)
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && v >= 0 && v < largest:
		return v, nil
	case err != nil && strings.Count(text, ",") == 1 && !math.IsNaN(commaed(text)):
		return 0, f.fault(line, column, "write numbers with a point", "%.40q has a comma in it", text)
	case err == nil && v < 0:
		return 0, f.fault(line, column, "mend or remove the line", "%.40q is negative, which no memory is", text)
	}
	return 0, f.fault(line, column, "mend or remove the line", "%.40q is not a size in MiB", text)
}

func commaed(text string) float64 {
	v, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}
