package watch

import (
	"fmt"
	"strings"
	"time"

	"llmparity/internal/record"
)

// Chart draws sums over time in a terminal's characters: RSS as a line, PSS as what is filled below it. It keeps as
// much as it draws: where there is no more room, two neighbours become one, of which the higher counts.
type Chart struct {
	width, height int // characters
	each          time.Duration
	rss, pss      []int64 // a bin each half character; 0: nothing was read
	last          Point
}

// NewChart makes a chart of that many characters, without its two lines of text, of samples that come that often.
func NewChart(width, height int, each time.Duration) *Chart {
	c := &Chart{each: max(each, 100*time.Millisecond)}
	c.Fit(width, height)
	return c
}

// Fit gives the chart another size.
func (c *Chart) Fit(width, height int) {
	c.width, c.height = max(width, 2), max(height, 1)
	for len(c.rss) > 2*c.width {
		c.halve()
	}
}

func (c *Chart) halve() {
	c.each *= 2
	c.rss, c.pss = halve(c.rss), halve(c.pss)
}

// Add adds a sample; times don't go back.
func (c *Chart) Add(p Point) {
	c.last = p
	for int(p.At/c.each) >= 2*c.width {
		c.halve()
	}
	bin := int(p.At / c.each)
	for len(c.rss) <= bin {
		c.rss, c.pss = append(c.rss, 0), append(c.pss, 0)
	}
	c.rss[bin] = max(c.rss[bin], p.RSS)
	c.pss[bin] = max(c.pss[bin], p.PSS, 0)
}

func halve(v []int64) []int64 {
	out := v[:0]
	for i := 0; i < len(v); i += 2 {
		out = append(out, max(v[i], v[min(i+1, len(v)-1)]))
	}
	return out
}

// braille has eight dots a character: two columns of four, numbered from the top, the left ones first.
var braille = [2][4]rune{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}

// Lines draws the chart.
func (c *Chart) Lines() []string {
	top := int64(1)
	for _, v := range c.rss {
		top = max(top, v)
	}
	grid := make([][]rune, c.height)
	for i := range grid {
		grid[i] = make([]rune, c.width)
	}
	dots := 4 * c.height
	dot := func(x, y int) { // y from the bottom
		y = dots - 1 - y
		grid[y/4][x/2] |= braille[x%2][y%4]
	}
	before := -1
	for x := range c.rss {
		if c.rss[x] == 0 {
			before = -1
			continue
		}
		y := level(c.rss[x], top, dots)
		from, to := y, y
		if before >= 0 {
			from, to = min(y, before), max(y, before)
		}
		for ; from <= to; from++ {
			dot(x, from)
		}
		before = y
		for fill := level(c.pss[x], top, dots); c.pss[x] > 0 && fill >= 0; fill-- {
			if (fill+x)%2 == 0 { // half tone
				dot(x, fill)
			}
		}
	}
	lines := []string{cut(fmt.Sprintf("%s RSS, line; PSS, filled", size(top)), c.width)}
	for _, row := range grid {
		line := make([]rune, len(row))
		for i, r := range row {
			line[i] = 0x2800 + r
		}
		lines = append(lines, string(line))
	}
	return append(lines, cut(c.last.String(), c.width))
}

// cut is as much of a text as there is room for.
func cut(s string, width int) string {
	runes := []rune(s)
	return string(runes[:min(len(runes), width)])
}

func level(v, top int64, dots int) int { return int(float64(v) / float64(top) * float64(dots-1)) }

// String is a sample in a line.
func (p Point) String() string {
	return fmt.Sprintf("%.1f s  %s  RSS %s  PSS %s", p.At.Seconds(), count(p.Processes, "process", "processes"),
		size(p.RSS), size(p.PSS))
}

func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func size(bytes int64) string {
	if bytes == record.Absent {
		return "not read"
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/record.MiB)
}

// Lines is a summary in lines of text.
func (s Summary) Lines() []string {
	out := []string{fmt.Sprintf("watched %s for %.1f s: %s, at most %v between two; %s",
		count(s.Processes, "process", "processes"), s.Length.Seconds(), count(s.Samples, "sample", "samples"),
		s.Longest.Round(time.Millisecond),
		strings.TrimSpace(s.Why))}
	if s.Samples == 0 {
		return out
	}
	out = append(out, fmt.Sprintf("peak RSS %s, peak PSS %s (sums over processes that were there at once; RSS counts shared pages once a process)",
		size(s.PeakRSS), size(s.PeakPSS)))
	switch {
	case s.CommandRSS == record.Absent || s.CommandRSS == 0:
	case s.CommandRSS <= s.CommandFloor:
		out = append(out, fmt.Sprintf("highest RSS of one process of the command, by the kernel (ru_maxrss): not above %s", size(s.CommandFloor)))
	default:
		out = append(out, fmt.Sprintf("highest RSS of one process of the command, by the kernel (ru_maxrss): %s",
			size(s.CommandRSS)))
	}
	out = append(out, s.GPUs.Lines()...)
	if s.CPU > 0 {
		out = append(out, fmt.Sprintf("own cost: %.2f %% of a core, %.0f µs a sample",
			100*s.CPU.Seconds()/max(s.Length.Seconds(), 1e-9), float64(s.CPU.Microseconds())/float64(s.Samples)))
	}
	return out
}
