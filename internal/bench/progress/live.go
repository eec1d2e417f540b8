package progress

import (
	"fmt"
	"strings"
	"time"

	"llmparity/internal/bench/run"
	"llmparity/internal/record"
)

// doing says what an engine does in a phase.
var doing = map[record.Phase]string{record.Baseline: "starting", record.Load: "loading", record.Warmup: "warming up",
	record.Measure: "prefilling", record.Idle: "idle", record.Unload: "unloading"}

// draw draws the live line, which is the last one of a terminal, after e:
//
//	cell 2/8  webllm 3/6  decoding 41/64  74 tok/s  441 MiB  18 s left
func (p *Progress) draw(e run.Event, now time.Time) {
	switch e.Kind {
	case run.Preparing:
		p.show(e.Engine + ": " + e.Text)
		return
	case run.Recording:
		p.show("recording into " + e.Text)
		return
	case run.Judged:
		return
	case run.Launched:
		p.phase = doing[record.Baseline]
	case run.Entered:
		p.phase = doing[e.Phase]
	case run.Generated:
		p.phase = fmt.Sprintf("decoding %d/%d", e.Token, e.Tokens)
	case run.Scoring:
		p.phase = fmt.Sprintf("scoring for %s: %d/%d", e.Text, e.Token, e.Tokens)
	case run.Ended:
		p.phase = "done"
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
	parts = append(parts, name, p.phase)
	if rate := p.pace.rate(now); rate > 0 {
		parts = append(parts, fmt.Sprintf("%.3g tok/s", rate))
	}
	if p.pace.memory > 0 {
		parts = append(parts, fmt.Sprintf("%.0f MiB", float64(p.pace.memory)/(1<<20)))
	}
	if rest, known := p.rest(now); known {
		parts = append(parts, roughly(rest)+" left"+p.after)
	}
	p.show(strings.Join(parts, "  "))
}

// show replaces the line. A line longer than the terminal would leave its first rows behind, so the end is cut.
func (p *Progress) show(text string) {
	if r, w := []rune(text), p.width(); w > 1 && len(r) >= w {
		text = string(r[:w-2]) + "…"
	}
	fmt.Fprint(p.out, "\r\x1b[K", text) // if it cannot be drawn, measuring goes on
}

// clear empties the line, for text that stays above the next one.
func (p *Progress) clear() {
	if p.width != nil {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
