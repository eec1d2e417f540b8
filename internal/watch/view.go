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

// View shows what is watched: a chart that is drawn again in place, or lines. Several may say what happens at once.
type View struct {
	mu    sync.Mutex
	out   io.Writer     // lines
	every time.Duration // of what is shown
	next  time.Duration

	chart *Chart   // nil: lines
	tty   *os.File // the chart's terminal
	own   bool     // it was opened for it
	drawn []string // what stands in the terminal
}

// How often there is a line where there can be no chart, and how often a chart is drawn: what drawing takes is taken
// from the machine that is measured.
const (
	lineEvery = 2 * time.Second
	redraw    = 250 * time.Millisecond
)

// NewView shows nothing but what happens unless live. A command writes through a chart: where it writes to a terminal
// there are lines.
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
		v.Say("no chart: the command writes to this terminal; send both its output and its errors elsewhere, such as > out.txt 2> err.txt")
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

// Say tells what happens, above the chart.
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

// Draw shows a point, if it is time for that.
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

// redraw writes all at once: half a chart is never seen. The terminal may have got another size.
func (v *View) redraw() {
	back := v.back()
	if width, height, err := term.GetSize(int(v.tty.Fd())); err == nil {
		v.chart.Fit(min(width-1, 100), min(height-4, 10))
	}
	v.drawn = v.chart.Lines()
	fmt.Fprint(v.tty, hideCursor+back+strings.Join(v.drawn, "\n")+"\n")
}

// back is what goes back to where the chart begins, and erases it. Lines that no longer fit stand in several.
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

// Close leaves the last chart, and the terminal as it was.
func (v *View) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.drawn) > 0 {
		v.redraw()
		fmt.Fprint(v.tty, showCursor)
		v.drawn = nil
	}
	if v.own {
		_ = v.tty.Close() // nothing is buffered
	}
}
