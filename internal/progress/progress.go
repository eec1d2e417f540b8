// Package progress shows how far a run is: to people as one live line on a terminal or as plain lines, to programs as
// lines of JSON. The time left is extrapolated from the launches that ended, so it says little after the first.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"llmparity/internal/fault"
	"llmparity/internal/run"
)

// redraw is the shortest time between two drawings, so that they cost the measured machine next to nothing.
const redraw = 250 * time.Millisecond

// Progress shows the events of a run. Several goroutines may call it: concurrent requests report their tokens.
type Progress struct {
	mu    *sync.Mutex // shared with the baseline run's, if two runs alternate
	out   io.Writer
	quiet bool
	side  string      // "baseline run" for the other one of two runs that alternate
	live  *liveLine   // nil: plain lines
	json  *jsonEvents // nil: for people
	pace  pace
}

// New shows progress on out, or nowhere if quiet.
func New(out io.Writer, quiet bool) *Progress {
	p := &Progress{mu: &sync.Mutex{}, out: out, quiet: quiet}
	if f, ok := out.(*os.File); ok && !quiet && term.IsTerminal(int(f.Fd())) {
		p.live = &liveLine{out: f, width: func() int { w, _, _ := term.GetSize(int(f.Fd())); return w }}
		p.live.show("checking", time.Now())
	}
	return p
}

// Beside returns the progress of another run that alternates with this one. Both print plain lines.
func (p *Progress) Beside(side string) *Progress {
	p.Close()
	p.live = nil
	return &Progress{mu: p.mu, out: p.out, quiet: p.quiet, json: p.json, side: side}
}

// InJSON writes lines of JSON to w instead.
func (p *Progress) InJSON(w io.Writer) {
	p.Close()
	p.live, p.json = nil, newJSONEvents(w)
}

// Event shows what the runner does.
func (p *Progress) Event(e run.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.pace.take(e, now)
	switch {
	case p.json != nil:
		p.json.event(e, &p.pace, now, p.side)
	case p.quiet:
	case p.live != nil:
		if e.Kind == run.Judged || e.Kind == run.Ended && e.Err != nil {
			p.live.clear()
			p.print(e, now)
		}
		p.live.event(e, &p.pace, now)
	default:
		p.print(e, now)
	}
}

// Say shows what is made or downloaded before the first launch.
func (p *Progress) Say(engine, text string) {
	p.Event(run.Event{Kind: run.Preparing, Engine: engine, Text: text})
}

// Note prints a remark, also with --quiet: it is about the result, not about progress.
func (p *Progress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.json != nil {
		p.json.write(Line{Kind: kindNote, Text: text, Side: p.side}, time.Now())
		return
	}
	p.live.clear()
	fmt.Fprintln(p.out, text)
}

// Done writes the last of the JSON events.
func (p *Progress) Done(e Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.json != nil {
		e.Kind = kindDone
		p.json.write(e, time.Now())
	}
}

// Close removes the live line.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live.clear()
}

// print writes the events that a log should have.
func (p *Progress) print(e run.Event, now time.Time) {
	line := ""
	switch e.Kind {
	case run.Preparing, run.Judged:
		line = e.Engine + ": " + e.Text
	case run.Recording:
		line = "recording into " + e.Text
	case run.Scoring:
		if e.Token == 0 {
			line = fmt.Sprintf("%s: scoring %d tokens for parity (not measured)", e.Engine, e.Tokens)
		}
	case run.Ended:
		line = fmt.Sprintf("[%d/%d] %s %s: %s%s", e.Launch, e.Launches, e.Engine, launchName(e), e.Text, cellOf(e))
		if e.Err != nil {
			line += ": " + fault.OneLine(e.Err.Error())
		}
		if rest, known := p.pace.rest(now); known && e.Launch < e.Launches {
			line += fmt.Sprintf(" (%s left)", roughly(rest))
		}
	}
	if line == "" {
		return
	}
	if p.side != "" {
		line = p.side + ": " + line
	}
	fmt.Fprintln(p.out, line)
}

// cellOf names the cell if there are several.
func cellOf(e run.Event) string {
	if e.Cells < 2 {
		return ""
	}
	return fmt.Sprintf(", cell %d of %d", e.Cell, e.Cells)
}

func launchName(e run.Event) string {
	if e.Warmup {
		return "warm-up"
	}
	return fmt.Sprintf("%d of %d", e.Repetition, e.Repetitions)
}
