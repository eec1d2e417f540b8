package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/run"
)

// liveLine is the last line of a terminal, drawn over and over:
//
//	cell 2/8  webllm 3/6  decoding 41/64  74 tok/s  441 MiB  18 s left
//
// A nil liveLine shows nothing.
type liveLine struct {
	out   io.Writer
	width func() int // of the terminal; 0: unknown
	phase string
	drawn time.Time
}

// doing says what an engine does in a phase.
var doing = map[record.Phase]string{record.Baseline: "starting", record.Load: "loading", record.Warmup: "warming up",
	record.Measure: "prefilling", record.Idle: "idle", record.Unload: "unloading"}

// event draws the state after e. Tokens come faster than anyone reads, so most of them draw nothing.
func (l *liveLine) event(e run.Event, p *pace, now time.Time) {
	tokens := e.Kind == run.Generated || e.Kind == run.Scoring && e.Token > 0
	if tokens && now.Sub(l.drawn) < redraw {
		return
	}
	switch e.Kind {
	case run.Preparing:
		l.show(e.Engine+": "+e.Text, now)
		return
	case run.Recording:
		l.show("recording into "+e.Text, now)
		return
	case run.Judged:
		return
	case run.Launched:
		l.phase = doing[record.Baseline]
	case run.Entered:
		l.phase = doing[e.Phase]
	case run.Generated:
		l.phase = fmt.Sprintf("decoding %d/%d", e.Token, e.Tokens)
	case run.Scoring:
		l.phase = fmt.Sprintf("scoring %d/%d", e.Token, e.Tokens)
	case run.Ended:
		l.phase = "done"
	}
	var parts []string
	if e.Cells > 1 && e.Cell > 0 {
		parts = append(parts, fmt.Sprintf("cell %d/%d", e.Cell, e.Cells))
	}
	name := e.Engine
	switch {
	case e.Warmup:
		name += " warm-up"
	case e.Repetitions > 0:
		name += fmt.Sprintf(" %d/%d", e.Repetition, e.Repetitions)
	}
	parts = append(parts, name, l.phase)
	if rate := p.rate(now); rate > 0 {
		parts = append(parts, fmt.Sprintf("%.3g tok/s", rate))
	}
	if p.memory > 0 {
		parts = append(parts, fmt.Sprintf("%.0f MiB", float64(p.memory)/(1<<20)))
	}
	if rest, known := p.rest(now); known {
		parts = append(parts, roughly(rest)+" left")
	}
	l.show(strings.Join(parts, "  "), now)
}

// show replaces the line. A line longer than the terminal would leave its first rows behind, so the end is cut.
func (l *liveLine) show(text string, now time.Time) {
	if r, w := []rune(text), l.width(); w > 1 && len(r) >= w {
		text = string(r[:w-2]) + "…"
	}
	fmt.Fprint(l.out, "\r\x1b[K", text) // if it cannot be drawn, measuring goes on
	l.drawn = now
}

// clear empties the line, for text that stays above the next one.
func (l *liveLine) clear() {
	if l != nil {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}
