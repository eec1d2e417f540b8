package watch

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// View shows messages and, if it is live, progress: a chart redrawn in place, or lines. It is safe for concurrent use.
type View struct {
	mu    sync.Mutex
	out   io.Writer
	every time.Duration // interval of output; 0: only messages
	next  time.Duration
	chart *chart // nil: lines
	drawn int    // lines of the chart on the terminal
}

// Intervals of lines, and of redrawing a chart, which costs CPU time.
const (
	lineEvery = 2 * time.Second
	redraw    = 250 * time.Millisecond
)

// NewView returns a view. A command may write over a chart, so beside one there are lines.
func NewView(out io.Writer, live, command bool, interval time.Duration) *View {
	v := &View{out: out}
	if !live {
		return v
	}
	v.every = lineEvery
	if f, ok := out.(*os.File); ok && !command && term.IsTerminal(int(f.Fd())) {
		v.every = redraw
		width, height := 80, 14
		if w, h, err := term.GetSize(int(f.Fd())); err == nil {
			width, height = w, h
		}
		v.chart = newChart(min(width-1, 100), min(height-4, 10), interval)
	}
	return v
}

// Say shows a message, above the chart.
func (v *View) Say(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.drawn == 0 {
		fmt.Fprintln(v.out, line)
		return
	}
	fmt.Fprintln(v.out, v.back()+line)
	v.drawn = 0
	v.draw()
}

// Draw shows a point, if it is time for output.
func (v *View) Draw(p Point) {
	if v.every == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.chart != nil {
		v.chart.add(p)
	}
	switch {
	case p.At < v.next:
		return
	case v.chart == nil:
		fmt.Fprintln(v.out, p)
	default:
		v.draw()
	}
	v.next = p.At + v.every
}

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	eraseBelow = "\x1b[J"
)

// draw draws the chart in one write.
func (v *View) draw() {
	lines := v.chart.lines()
	fmt.Fprint(v.out, hideCursor+v.back()+strings.Join(lines, "\n")+"\n")
	v.drawn = len(lines)
}

// back returns the escape sequence that erases the chart.
func (v *View) back() string {
	if v.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r%s", v.drawn, eraseBelow)
}

// Close leaves the last chart, and shows the cursor again.
func (v *View) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.drawn > 0 {
		v.draw()
		fmt.Fprint(v.out, showCursor)
		v.drawn = 0
	}
}

// chart draws total memory over time as text. When the width is exhausted, it merges neighbouring points and keeps the
// higher one.
type chart struct {
	width, height int // characters
	each          time.Duration
	rss, pss      []int64 // one for each character; 0: not read
	last          Point
}

// newChart returns a chart of the given size in characters, without its two lines of text, for samples at the given
// interval.
func newChart(width, height int, each time.Duration) *chart {
	return &chart{width: max(width, 2), height: max(height, 1), each: max(each, 100*time.Millisecond)}
}

// add adds a sample; times must not decrease.
func (c *chart) add(p Point) {
	c.last = p
	for int(p.At/c.each) >= c.width {
		c.each *= 2
		c.rss, c.pss = halve(c.rss), halve(c.pss)
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

// lines draws the chart.
func (c *chart) lines() []string {
	top := int64(1)
	for _, v := range c.rss {
		top = max(top, v)
	}
	out := []string{c.cut(size(top) + " RSS, light; PSS, dark")}
	for row := c.height - 1; row >= 0; row-- {
		above := top * int64(row) / int64(c.height)
		line := make([]rune, len(c.rss))
		for x := range line {
			switch {
			case c.pss[x] > above:
				line[x] = '█'
			case c.rss[x] > above:
				line[x] = '░'
			default:
				line[x] = ' '
			}
		}
		out = append(out, string(line))
	}
	return append(out, c.cut(c.last.String()))
}

func (c *chart) cut(s string) string { return s[:min(len(s), c.width)] }
