package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// maxMetrics limits a page of metrics; servers with many histograms write some hundred KB.
const maxMetrics = 16 << 20

// Metric is a series on a metrics page.
type Metric struct {
	Name   string
	Labels []Label // in their order
	Value  float64 // may be NaN or infinite
}

// Label is one of a series' labels.
type Label struct{ Name, Value string }

// Label returns the value of a label; empty if there is none.
func (m Metric) Label(name string) string {
	for _, l := range m.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// Metrics parses a page in Prometheus' text format, and in OpenMetrics where that is the same. It returns the series
// that want accepts; a nil want accepts all. Help, types, timestamps and exemplars are ignored. An error names the
// line.
func Metrics(r io.Reader, want func(name string) bool) ([]Metric, error) {
	page, err := io.ReadAll(io.LimitReader(r, maxMetrics+1))
	if err != nil {
		return nil, err
	}
	if len(page) > maxMetrics {
		return nil, fmt.Errorf("metrics page longer than %d MiB", maxMetrics>>20)
	}
	var out []Metric
	n := 0
	for line := range bytes.Lines(page) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		m, ok, err := metric(line, want)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w in %.80q", n, err, line)
		}
		if ok {
			out = append(out, m)
		}
	}
	return out, nil
}

// metric parses a line such as name{label="value"} 1.5 1700000000.
func metric(line []byte, want func(string) bool) (m Metric, wanted bool, err error) {
	end := bytes.IndexAny(line, "{ \t")
	if end <= 0 {
		return m, false, errors.New("no name and value")
	}
	name, rest := line[:end], bytes.TrimLeft(line[end:], " \t")
	if !named(name, true) {
		return m, false, errors.New("invalid name")
	}
	m.Name = string(name)
	if wanted = want == nil || want(m.Name); !wanted {
		return m, false, nil
	}
	if len(rest) > 0 && rest[0] == '{' {
		if m.Labels, rest, err = labels(rest[1:]); err != nil {
			return m, false, err
		}
	}
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return m, false, errors.New("no value")
	}
	if m.Value, err = strconv.ParseFloat(string(fields[0]), 64); err != nil && !math.IsInf(m.Value, 0) {
		return m, false, errors.New("invalid value")
	}
	return m, true, nil
}

// labels parses labels up to the closing brace, and returns the rest.
func labels(text []byte) ([]Label, []byte, error) {
	var out []Label
	for {
		text = bytes.TrimLeft(text, " \t,")
		if len(text) > 0 && text[0] == '}' {
			return out, text[1:], nil
		}
		name, rest, ok := bytes.Cut(text, []byte("="))
		name, rest = bytes.TrimSpace(name), bytes.TrimSpace(rest)
		if !ok || !named(name, false) || len(rest) == 0 || rest[0] != '"' {
			return nil, nil, errors.New("invalid labels")
		}
		value, rest, ok := quoted(rest[1:])
		if !ok {
			return nil, nil, errors.New("unterminated label value")
		}
		out = append(out, Label{string(name), value})
		text = rest
	}
}

// quoted parses a value up to its closing quote.
func quoted(text []byte) (value string, rest []byte, ok bool) {
	var b []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return string(b), text[i+1:], true
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] == 'n' {
				b = append(b, '\n')
				continue
			}
			b = append(b, text[i])
		default:
			b = append(b, c)
		}
	}
	return "", nil, false
}

// named reports whether a name is valid for a metric, which may have colons, or for a label.
func named(name []byte, colons bool) bool {
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || colons && c == ':'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return len(name) > 0
}
