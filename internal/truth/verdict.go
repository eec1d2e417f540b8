package truth

import (
	"fmt"
	"math"

	"llmparity/compare/stats"
)

// Verdict is whether a source sees a kind of memory.
type Verdict string

// The verdicts.
const (
	Sees   Verdict = "sees"   // moved by the size, within 3%
	Blind  Verdict = "blind"  // moved by less than 3 MiB
	Other  Verdict = "other"  // moved by another amount
	Absent Verdict = "absent" // not available
)

// Tolerances: of Sees as a share of the size, of Blind in MiB.
const (
	near  = 0.03
	still = 3.0
)

// judge returns the verdict for a change of moved MiB by allocating size MiB.
func judge(moved, size float64) Verdict {
	switch {
	case math.IsNaN(moved):
		return Absent
	case math.Abs(moved-size) <= near*size:
		return Sees
	case math.Abs(moved) <= still:
		return Blind
	}
	return Other
}

// limits returns the expected range in MiB.
func (w Want) limits(size float64) (least, most float64) {
	least, most = w.least*size, w.most*size
	if w.exact {
		return least, most
	}
	slack := func(share float64) float64 {
		if share == 0 {
			return still
		}
		return near * size
	}
	return least - slack(w.least), most + slack(w.most)
}

// Cell is the result for a source and a kind.
type Cell struct {
	MiB      *float64 // median change; nil: not available
	Verdict  Verdict
	Expected *Range
	Wrong    bool // outside the expected range
}

// Range is an expected range in MiB.
type Range struct {
	Least float64
	Most  float64
}

// Matrix is a table with measurements.
type Matrix struct {
	Title string
	Kinds []Kind
	Lines []Line
	size  float64 // MiB
}

// Line is a row with its cells, in the order of the kinds.
type Line struct {
	Row
	Cells []Cell
}

// matrix judges the changes: for each kind and row, one for each repeat.
func (t Table) matrix(p Platform, size float64, moved map[string]map[string][]float64) Matrix {
	m := Matrix{Title: t.Title, Kinds: t.Kinds, size: size}
	for _, r := range t.Rows {
		line := Line{Row: r}
		for _, k := range t.Kinds {
			line.Cells = append(line.Cells, newCell(p, r, k, size, moved[k.ID][r.ID]))
		}
		m.Lines = append(m.Lines, line)
	}
	return m
}

func newCell(p Platform, r Row, k Kind, size float64, runs []float64) Cell {
	c := Cell{Verdict: Absent}
	if want, expected := p.want(r, k); expected {
		least, most := want.limits(size)
		c.Expected = &Range{least, most}
	}
	if len(runs) == 0 {
		return c
	}
	m := stats.Median(runs)
	c.MiB, c.Verdict = &m, judge(m, size)
	c.Wrong = c.Expected != nil && (m < c.Expected.Least || m > c.Expected.Most)
	return c
}

// Contradictions lists unexpected cells, a line each.
func (m Matrix) Contradictions() []string {
	var out []string
	for _, l := range m.Lines {
		for i, c := range l.Cells {
			if c.Wrong {
				out = append(out, fmt.Sprintf(
					"%s %s moved by %.2f MiB for %g MiB of %s, want %.2f to %.2f",
					l.Who, l.Figure, *c.MiB, m.size, m.Kinds[i].Name, c.Expected.Least, c.Expected.Most))
			}
		}
	}
	return out
}
