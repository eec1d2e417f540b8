package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"llmparity/internal/watch"
)

// view shows what is watched: a chart that is drawn again in place, or lines.
type view struct {
	out   io.Writer
	every time.Duration // of what is shown
	chart *watch.Chart  // nil: lines
	high  int           // lines of the chart that stand in the terminal
	next  time.Duration
}

// lineEvery is how often there is a line where there can be no chart.
const lineEvery = 2 * time.Second

// newView shows nothing but what happens unless live. A command writes to the terminal too, through a chart: it gets lines.
func newView(out io.Writer, live, command bool) *view {
	v := &view{out: out}
	if !live {
		return v
	}
	v.every = lineEvery
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return v
	}
	if command && term.IsTerminal(int(os.Stdout.Fd())) {
		v.say("no chart: the command writes to this terminal; send its output elsewhere, such as > out.txt")
		return v
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return v
	}
	v.every = redraw
	v.chart = watch.NewChart(min(width-1, 100), min(height-4, 10))
	return v
}

// say tells what happens, above the chart.
func (v *view) say(line string) {
	v.erase()
	fmt.Fprintln(v.out, line)
	v.show()
}

func (v *view) draw(p watch.Point) {
	if v.every == 0 {
		return
	}
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

// redraw writes all at once: half a chart is never seen.
func (v *view) redraw() {
	up := ""
	if v.high > 0 {
		up = fmt.Sprintf("\x1b[%dA", v.high)
	}
	lines := v.chart.Lines()
	v.high = len(lines)
	fmt.Fprint(v.out, hideCursor+up+"\r"+eraseBelow+strings.Join(lines, "\n")+"\n")
}

func (v *view) erase() {
	if v.high > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\r%s", v.high, eraseBelow)
	}
}

func (v *view) show() {
	if v.high > 0 {
		v.high = 0
		v.redraw()
	}
}

// close leaves the last chart, and the terminal as it was.
func (v *view) close() {
	if v.high > 0 {
		v.redraw()
		fmt.Fprint(v.out, showCursor)
	}
}
