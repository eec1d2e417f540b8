package watch

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// View shows progress: a chart redrawn in place, or lines. It is safe for concurrent use.
type View struct {
	mu    sync.Mutex
	out   io.Writer     // lines
	every time.Duration // interval of output
	next  time.Duration

	chart *Chart   // nil: lines
	tty   *os.File // terminal of the chart
	own   bool     // we opened it
	drawn []string // lines on the terminal
}

// Intervals of lines, and of redrawing a chart, which costs CPU time.
const (
	lineEvery = 2 * time.Second
	redraw    = 250 * time.Millisecond
)

// NewView returns a view that shows only messages unless live. A command writes over a chart, so if it writes to the
// terminal there are lines.
func NewView(out io.Writer, live, command bool, interval time.Duration) *View {
	v := &View{out: out}
	if !live {
		return v
	}
	v.every = lineEvery
	f, ok := out.(*os.File)
	terminal := ok && term.IsTerminal(int(f.Fd()))
	switch {
	case !command && !terminal:
		return v
	case !command:
		v.tty = f
	case terminal || term.IsTerminal(int(os.Stdout.Fd())):
		v.Say("no chart, because the command writes to this terminal; redirect its output: > out.txt 2> err.txt")
		return v
	default:
		tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
		if err != nil { // there is no terminal
			return v
		}
		v.tty, v.own = tty, true
	}
	v.every = redraw
	v.chart = NewChart(80, 10, interval)
	return v
}

// Say shows a message, above the chart.
func (v *View) Say(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.own || len(v.drawn) == 0 {
		fmt.Fprintln(v.out, line)
		return
	}
	fmt.Fprint(v.tty, v.back())
	v.drawn = nil
	fmt.Fprintln(v.out, line)
	v.redraw()
}

// Draw shows a point, if it is time for output.
func (v *View) Draw(p Point) {
	if v.every == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.chart != nil {
		v.chart.Add(p)
	}
	if p.At < v.next {
		return
	}
	v.next = p.At + v.every
	if v.chart == nil {
		fmt.Fprintln(v.out, p)
		return
	}
	v.redraw()
}

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	eraseBelow = "\x1b[J"
)

// redraw draws the chart in one write. The terminal's size may have changed.
func (v *View) redraw() {
	back := v.back()
	if width, height, err := term.GetSize(int(v.tty.Fd())); err == nil {
		v.chart.Fit(min(width-1, 100), min(height-4, 10))
	}
	v.drawn = v.chart.Lines()
	fmt.Fprint(v.tty, hideCursor+back+strings.Join(v.drawn, "\n")+"\n")
}

// back returns the escape sequence that erases the chart. Lines wider than the terminal occupy several rows.
func (v *View) back() string {
	if len(v.drawn) == 0 {
		return ""
	}
	width, _, err := term.GetSize(int(v.tty.Fd()))
	rows := 0
	for _, line := range v.drawn {
		rows++
		if n := utf8.RuneCountInString(line); err == nil && width > 0 && n > width {
			rows += (n - 1) / width
		}
	}
	return fmt.Sprintf("\x1b[%dA\r%s", rows, eraseBelow)
}

// Close leaves the last chart, and restores the terminal.
func (v *View) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.drawn) > 0 {
		v.redraw()
		fmt.Fprint(v.tty, showCursor)
		v.drawn = nil
	}
	if v.own {
		_ = v.tty.Close()
	}
}
