package wire

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// maxMetrics limits a page of metrics; servers with many histograms write some hundred KB.
const maxMetrics = 16 << 20

// Metric is a series on a metrics page.
type Metric struct {
	Name   string
	Labels map[string]string
	Value  float64 // may be NaN or infinite
}

// Lines of a page, such as name{label="value"} 1.5 1700000000.
var (
	metricLine = regexp.MustCompile(`^([a-zA-Z_:][\w:]*)\s*(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}\s*|\s)(\S+)`)
	labelPart  = regexp.MustCompile(`(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"`)
	escapes    = strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`)
)

// Metrics parses a page in Prometheus' text format. It returns the series that want accepts. An error names the line.
func Metrics(r io.Reader, want func(name string) bool) ([]Metric, error) {
	page, err := io.ReadAll(io.LimitReader(r, maxMetrics))
	if err != nil {
		return nil, err
	}
	var out []Metric
	n := 0
	for line := range bytes.Lines(page) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		m := metricLine.FindSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %d is not a metric: %.80q", n, line)
		}
		if !want(string(m[1])) {
			continue
		}
		value, err := strconv.ParseFloat(string(m[3]), 64)
		if err != nil {
			return nil, fmt.Errorf("line %d has no value: %.80q", n, line)
		}
		labels := map[string]string{}
		for _, l := range labelPart.FindAllSubmatch(m[2], -1) {
			labels[string(l[1])] = escapes.Replace(string(l[2]))
		}
		out = append(out, Metric{string(m[1]), labels, value})
	}
	return out, nil
}
