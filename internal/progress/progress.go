// Package progress tells how far a run is: people by a bar or lines, programs by lines of JSON. It decides nothing, and
// how long the rest may take is by the launches that ended, which says little after the first.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"llmparity/internal/fault"
	"llmparity/internal/run"
)

// redraw bounds what drawing takes from the machine that is measured.
const redraw = 250 * time.Millisecond

// Progress tells who waits how far a run is: a person by a bar on a terminal and by plain lines elsewhere, a program by
// JSON. It may be called from several goroutines at once: concurrent requests report their tokens.
type Progress struct {
	mu    *sync.Mutex // that of the other side, too, where runs take turns
	out   io.Writer
	quiet bool
	side  string                   // baseline run, of two that take turns
	bar   *progressbar.ProgressBar // nil: plain lines
	json  *jsonEvents              // nil: for people
	pace  pace
	drawn time.Time
}

// New tells on out, or nothing where it is quiet.
func New(out io.Writer, quiet bool) *Progress {
	p := &Progress{mu: &sync.Mutex{}, out: out, quiet: quiet}
	if f, ok := out.(*os.File); ok && !quiet && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(1, progressbar.OptionSetWriter(f), progressbar.OptionSetWidth(24),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetRenderBlankState(true),
			progressbar.OptionSetDescription("checking"))
	}
	return p
}

// Beside is the progress of another run that takes turns with this one: both are told in plain lines.
func (p *Progress) Beside(side string) *Progress {
	p.Close()
	p.bar = nil
	return &Progress{mu: p.mu, out: p.out, quiet: p.quiet, json: p.json, side: side}
}

// InJSON has everything told as JSON instead.
func (p *Progress) InJSON(w io.Writer) { p.bar, p.json = nil, newJSONEvents(w) }

// Event tells what the runner does.
func (p *Progress) Event(e run.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.pace.take(e, now)
	switch {
	case p.json != nil:
		p.json.event(e, &p.pace, now, p.side)
	case p.quiet:
	case p.bar != nil:
		p.draw(e, now)
	default:
		p.print(e, now)
	}
}

// Say tells what is made, or fetched, before anything is launched.
func (p *Progress) Say(engine, text string) {
	p.Event(run.Event{Kind: run.Preparing, Engine: engine, Text: text})
}

// Note tells what a reader should know, however quiet the run is to be: cells that won't run are no progress.
func (p *Progress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.json != nil {
		p.json.write(Line{Kind: kindNote, Text: text, Side: p.side}, time.Now())
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
		e.Kind = kindDone
		p.json.write(e, time.Now())
	}
}

func (p *Progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear() // a terminal that can't be written to is no reason to stop measuring
	}
}

func (p *Progress) print(e run.Event, now time.Time) {
	if p.side != "" && e.Kind != run.Launched && e.Kind != run.Entered && e.Kind != run.Generated &&
		(e.Kind != run.Scoring || e.Token == 0) {
		fmt.Fprintf(p.out, "%s: ", p.side)
	}
	switch e.Kind {
	case run.Preparing:
		fmt.Fprintf(p.out, "%s: %s\n", e.Engine, e.Text)
	case run.Recording:
		fmt.Fprintf(p.out, "recording into %s\n", e.Text)
	case run.Judged:
		fmt.Fprintf(p.out, "%s: %s\n", e.Engine, e.Text)
	case run.Scoring:
		if e.Token == 0 {
			fmt.Fprintf(p.out, "%s: scoring a text of %d tokens, which is no measurement\n", e.Engine, e.Tokens)
		}
	case run.Ended:
		line := fmt.Sprintf("[%d/%d] %s %s: %s%s", e.Launch, e.Launches, e.Engine, launchName(e), e.Text, cellOf(e))
		if e.Err != nil {
			line += ": " + fault.OneLine(e.Err.Error())
		}
		if rest, known := p.pace.rest(now); known && e.Launch < e.Launches {
			line += fmt.Sprintf(" (%s left)", roughly(rest))
		}
		fmt.Fprintln(p.out, line)
	}
}

// draw changes the bar's text. The bar itself decides nothing: it is told.
func (p *Progress) draw(e run.Event, now time.Time) {
	switch e.Kind {
	case run.Preparing:
		p.describe(e.Engine + ": " + e.Text)
	case run.Recording:
		p.describe("recording into " + e.Text)
	case run.Judged:
		p.clear()
		fmt.Fprintf(p.out, "%s: %s\n", e.Engine, e.Text)
	case run.Launched:
		p.bar.ChangeMax(e.Launches)
		p.describe(e.Engine + " " + launchName(e))
	case run.Entered:
		p.describe(fmt.Sprintf("%s %s%s: %s%s", e.Engine, launchName(e), cellOf(e), e.Phase, p.pace.aside(now)))
	case run.Generated:
		if time.Since(p.drawn) >= redraw {
			p.describe(fmt.Sprintf("%s %s: %s, token %d of %d%s", e.Engine, launchName(e), e.Phase, e.Token, e.Tokens,
				p.pace.aside(now)))
		}
	case run.Scoring:
		if e.Token == 0 || time.Since(p.drawn) >= redraw {
			p.describe(fmt.Sprintf("%s: scoring, token %d of %d", e.Engine, e.Token, e.Tokens))
		}
	case run.Ended:
		if e.Err != nil {
			p.clear()
			fmt.Fprintf(p.out, "%s %s: %s: %s\n", e.Engine, launchName(e), e.Text, fault.OneLine(e.Err.Error()))
		}
		_ = p.bar.Set(e.Launch)
	}
}

func (p *Progress) describe(text string) {
	p.bar.Describe(text)
	p.drawn = time.Now()
}

// Close leaves the terminal as it was.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// cellOf says which cell it was, where there are several.
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
