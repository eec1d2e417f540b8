// Package truth measures which source of figures includes which kind of memory. It allocates memory of a known size,
// one kind after another, and reads every source before and after. The result is a matrix with a verdict for each cell,
// compared with the expectation for this platform.
//
// It can't say what a source sees of other memory, such as a driver's own, memory shared in another way, or sizes for
// which a program uses another allocator.
package truth

import (
	"fmt"
	"math"
	"strings"

	"llmparity/internal/stats"
)

// Kind is a kind of memory.
type Kind struct {
	ID   string
	Name string
	gpu  bool // its location depends on the WebGPU adapter
}

// Row is a figure of a source.
type Row struct {
	ID     string // key in readings
	Who    string // page, renderer, process …
	Figure string // name of the figure
	// wants has the expected change for each kind; missing kinds: none; nil: unknown.
	wants map[string]want
	where where
}

// where is the platforms that a row's wants apply to.
type where int

const (
	everywhere where = iota // figures of the browser
	onLinux                 // figures of the kernel; for WebGPU only on the CPU
)

// Table is a matrix without measurements.
type Table struct {
	Title string
	Kinds []Kind
	Rows  []Row
}

// want is the expected change as a share of the size, before tolerances.
type want struct {
	least, most float64
	exact       bool // to the byte
}

var (
	all   = want{least: 1, most: 1}
	none  = want{}
	exact = want{least: 1, most: 1, exact: true}
)

func between(least, most float64) want { return want{least: least, most: most} }

// Tolerances: of what is seen as a share of the size, of what is not seen in MiB.
const (
	near  = 0.03
	still = 3.0
)

// limits returns the expected range in MiB.
func (w want) limits(size float64) (least, most float64) {
	slack := func(share float64) float64 {
		switch {
		case w.exact:
			return 0
		case share == 0:
			return still
		}
		return near * size
	}
	return w.least*size - slack(w.least), w.most*size + slack(w.most)
}

// Platform is what expectations depend on.
type Platform struct {
	OS       string // runtime.GOOS; empty: the processes are on another machine
	Software bool   // WebGPU computes on the CPU
}

// Matrix is a table with measurements.
type Matrix struct {
	Table
	Facts string // circumstances, such as versions
	lines []line
	size  float64 // MiB
}

// line is a row with its cells, in the order of the kinds.
type line struct {
	Row
	cells []cell
}

// cell is the result for a source and a kind.
type cell struct {
	size        float64
	mib         float64 // median change; NaN: not available
	expected    bool
	least, most float64 // MiB, if a change is expected
}

// matrix judges the changes: for each kind and row, one for each repeat.
func (t Table) matrix(p Platform, size float64, moved map[string]map[string][]float64) Matrix {
	m := Matrix{Table: t, size: size}
	for _, r := range t.Rows {
		l := line{Row: r}
		for _, k := range t.Kinds {
			c := cell{size: size, mib: math.NaN(),
				expected: r.wants != nil && (r.where != onLinux || p.OS == "linux" && (!k.gpu || p.Software))}
			c.least, c.most = r.wants[k.ID].limits(size)
			if runs := moved[k.ID][r.ID]; len(runs) > 0 {
				c.mib = stats.Median(runs)
			}
			l.cells = append(l.cells, c)
		}
		m.lines = append(m.lines, l)
	}
	return m
}

func (c cell) wrong() bool { return c.expected && (c.mib < c.least || c.mib > c.most) }

func (c cell) String() string {
	verdict := "other"
	switch {
	case math.IsNaN(c.mib):
		return "-"
	case math.Abs(c.mib-c.size) <= near*c.size:
		verdict = "yes"
	case math.Abs(c.mib) <= still:
		verdict = "no"
	}
	if c.wrong() {
		verdict += " !"
	}
	return strings.Replace(fmt.Sprintf("%.1f %s", c.mib, verdict), "-0.0 ", "0.0 ", 1)
}

// Contradictions lists unexpected cells, a line each.
func (m Matrix) Contradictions() (out []string) {
	for _, l := range m.lines {
		for i, c := range l.cells {
			if c.expected && math.IsNaN(c.mib) {
				out = append(out, fmt.Sprintf("%s %s: not available for %s", l.Who, l.Figure, m.Kinds[i].Name))
			}
			if c.wrong() {
				out = append(out, fmt.Sprintf("%s %s moved by %.2f MiB for %g MiB of %s, want %.2f to %.2f",
					l.Who, l.Figure, c.mib, m.size, m.Kinds[i].Name, c.least, c.most))
			}
		}
	}
	return out
}
