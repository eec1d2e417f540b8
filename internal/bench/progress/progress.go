// Package progress shows how far a run is: to people as one live line on a terminal or as plain lines, to programs as
// lines of JSON. The time left is extrapolated from the launches that ended, so it says little after the first.
package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"llmparity/internal/bench/run"
	"llmparity/internal/kit/fault"
)

// redraw is the shortest time between two drawings, so that they cost the measured machine next to nothing.
const redraw = 250 * time.Millisecond

// heartbeat is how long a log may be silent while a launch goes on.
const heartbeat = 30 * time.Second

// Progress shows the events of a run. Several goroutines may call it: concurrent requests report their tokens.
type Progress struct {
	mu    *sync.Mutex // shared with the baseline run's, if two runs alternate
	out   io.Writer
	quiet bool
	side  string        // "baseline run" for the other one of two runs that alternate
	width func() int    // of the terminal that has a live line, 0: unknown; nil: plain lines
	phase string        // in the live line
	json  *json.Encoder // nil: for people
	drawn time.Time     // when tokens were last shown
	said  time.Time     // when a plain line was last printed
	pace  pace
	all   *[]*Progress   // of the runs that alternate, this one included
	after string         // what follows the launches and has no prediction
	why   map[int]string // the last error of each cell
}

// New shows progress on out, or nowhere if quiet.
func New(out io.Writer, quiet bool) *Progress {
	p := &Progress{mu: &sync.Mutex{}, out: out, quiet: quiet, why: map[int]string{}}
	p.all = &[]*Progress{p}
	if f, ok := out.(*os.File); ok && !quiet && term.IsTerminal(int(f.Fd())) {
		p.width = func() int { w, _, _ := term.GetSize(int(f.Fd())); return w }
		p.show("checking")
	}
	return p
}

// Beside returns the progress of another run that alternates with this one. Both print plain lines.
func (p *Progress) Beside(side string) *Progress {
	p.Close()
	p.width = nil
	beside := &Progress{mu: p.mu, out: p.out, quiet: p.quiet, json: p.json, side: side, all: p.all,
		why: map[int]string{}}
	*p.all = append(*p.all, beside)
	return beside
}

// rest is the time left for all runs that alternate, if it is known for each.
func (p *Progress) rest(now time.Time) (all time.Duration, known bool) {
	for _, of := range *p.all {
		rest, known := of.pace.rest(now)
		if !known {
			return 0, false
		}
		all += rest
	}
	return all, true
}

// InJSON writes lines of JSON to w instead.
func (p *Progress) InJSON(w io.Writer) {
	p.Close()
	p.width, p.json = nil, json.NewEncoder(w)
	p.json.SetEscapeHTML(false)
}

// Event shows what the runner does. Tokens come faster than anyone reads, so most of them are not shown.
func (p *Progress) Event(e run.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.pace.take(e, now)
	if e.Token > 0 && (e.Kind == run.Generated || e.Kind == run.Scoring) {
		if now.Sub(p.drawn) < redraw {
			return
		}
		p.drawn = now
	}
	switch {
	case p.json != nil:
		p.write(p.line(e, now), now)
	case p.quiet:
	case p.width != nil:
		if e.Kind == run.Judged || e.Kind == run.Ended && e.Err != nil {
			p.clear()
			p.print(e, now)
		}
		p.draw(e, now)
	default:
		p.print(e, now)
	}
}

// Expect adds the predicted time of scoring to the time left. known is false if some of it has no prediction.
func (p *Progress) Expect(s []Scoring, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pace.toScore = s
	if !known {
		p.after = ", without scoring"
	}
}

// Say shows what is made or downloaded before the first launch.
func (p *Progress) Say(engine, text string) {
	p.Event(run.Event{Kind: run.Preparing, Engine: engine, Text: text})
}

// Remark shows what to know before the first launch. It stays on a terminal.
func (p *Progress) Remark(about, text string) {
	if p.json != nil || p.width == nil {
		p.Say(about, text)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintln(p.out, about+": "+text)
}

// Note prints a remark, also with --quiet: it is about the result, not about progress.
func (p *Progress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.json != nil {
		p.write(Line{Kind: run.Judged, Text: text, Side: p.side}, time.Now())
		return
	}
	p.clear()
	fmt.Fprintln(p.out, text)
}

// Done writes the last of the JSON events.
func (p *Progress) Done(e Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.json != nil {
		e.Kind = run.Done
		p.write(e, time.Now())
	}
}

// Close removes the live line.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// print writes the events that a log should have.
func (p *Progress) print(e run.Event, now time.Time) {
	line, which := "", fmt.Sprintf("%d of %d", e.Repetition, e.Repetitions)
	if e.Warmup {
		which = "warm-up"
	}
	switch e.Kind {
	case run.Launched:
		p.said = now
	case run.Entered, run.Generated:
		if now.Sub(p.said) < heartbeat {
			return
		}
		what := doing[e.Phase]
		if rate := p.pace.rate(now); e.Token > 0 && rate > 0 {
			what = fmt.Sprintf("decoding, %d of %d tokens, %.2g tokens/s", e.Token, e.Tokens, rate)
		}
		line = fmt.Sprintf("[%d/%d] %s %s: %s", e.Launch, e.Launches, e.Engine, which, what)
	case run.Preparing, run.Judged:
		line = e.Engine + ": " + e.Text
	case run.Recording:
		line = "recording into " + e.Text
	case run.Scoring:
		// A text may have hundreds of windows.
		if e.Token > 0 || p.pace.scoring.texts > 1 && now.Sub(p.said) < heartbeat {
			return
		}
		left := ""
		if rest, known := p.rest(now); known {
			left = "; " + roughly(rest) + " left"
		}
		line = fmt.Sprintf("%s: scoring %d tokens for %s (not measured%s)", e.Engine, e.Tokens, e.Text, left)
	case run.Ended:
		line = fmt.Sprintf("[%d/%d] %s %s: %s", e.Launch, e.Launches, e.Engine, which, e.Text)
		if e.Cells > 1 {
			line += fmt.Sprintf(", cell %d of %d", e.Cell, e.Cells)
		}
		if kind := fault.Of(e.Err); e.Err != nil && kind != fault.Interrupted && kind != fault.Terminated {
			why := fault.OneLine(e.Err.Error())
			if line += ": "; why == p.why[e.Cell] {
				line += "the same error as before"
			} else {
				line += why
			}
			p.why[e.Cell] = why
		}
		if rest, known := p.rest(now); known && e.Launch < e.Launches {
			line += fmt.Sprintf(" (%s left%s)", roughly(rest), p.after)
		}
	}
	if line == "" {
		return
	}
	p.said = now
	if p.side != "" {
		line = p.side + ": " + line
	}
	fmt.Fprintln(p.out, line)
}
