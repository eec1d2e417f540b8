package watch

import (
	"fmt"
	"strings"
	"time"

	"llmparity/internal/record"
)

// Chart draws total memory over time as text: RSS as a line, PSS filled. When the width is exhausted, it merges
// neighbouring points and keeps the higher one.
type Chart struct {
	width, height int // characters
	each          time.Duration
	rss, pss      []int64 // two bins for each character; 0: not read
	last          Point
}

// NewChart returns a chart of the given size in characters, without its two lines of text, for samples at the given
// interval.
func NewChart(width, height int, each time.Duration) *Chart {
	c := &Chart{each: max(each, 100*time.Millisecond)}
	c.Fit(width, height)
	return c
}

// Fit changes the size of the chart.
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

// Add adds a sample; times must not decrease.
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

// braille has the bits of a braille character's eight dots: two columns of four from the top, the left one first.
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

// cut shortens a text to a width.
func cut(s string, width int) string {
	runes := []rune(s)
	return string(runes[:min(len(runes), width)])
}

func level(v, top int64, dots int) int { return int(float64(v) / float64(top) * float64(dots-1)) }

// String describes a sample in a line.
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

// Lines describes the summary.
func (s Summary) Lines() []string {
	out := []string{fmt.Sprintf("watched %s for %.1f s: %s, at most %v apart; %s",
		count(s.Processes, "process", "processes"), s.Length.Seconds(), count(s.Samples, "sample", "samples"),
		s.Longest.Round(time.Millisecond),
		strings.TrimSpace(s.Why))}
	if s.Samples == 0 {
		return out
	}
	out = append(out, fmt.Sprintf("peak RSS %s, peak PSS %s (totals; RSS counts shared pages once for each process)",
		size(s.PeakRSS), size(s.PeakPSS)))
	switch {
	case s.CommandRSS == record.Absent || s.CommandRSS == 0:
	case s.CommandRSS <= s.CommandFloor:
		out = append(out, fmt.Sprintf("highest RSS of a single process (ru_maxrss): at most %s", size(s.CommandFloor)))
	default:
		out = append(out, fmt.Sprintf("highest RSS of a single process (ru_maxrss): %s",
			size(s.CommandRSS)))
	}
	out = append(out, s.GPUs.Lines()...)
	if s.CPU > 0 {
		out = append(out, fmt.Sprintf("cost of watching: %.2f%% of a core, %.0f µs per sample",
			100*s.CPU.Seconds()/max(s.Length.Seconds(), 1e-9), float64(s.CPU.Microseconds())/float64(s.Samples)))
	}
	return out
}
