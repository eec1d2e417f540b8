package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"llmparity/internal/fault"
	"llmparity/internal/run"
)

// redraw bounds what drawing takes from the machine that is measured.
const redraw = 250 * time.Millisecond

// progress tells a person who waits how far a run is: a bar on a terminal, plain lines elsewhere.
type progress struct {
	out   io.Writer
	quiet bool
	bar   *progressbar.ProgressBar // nil: plain lines
	drawn time.Time
}

func newProgress(out io.Writer, quiet bool) *progress {
	p := &progress{out: out, quiet: quiet}
	if f, ok := out.(*os.File); ok && !quiet && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(1, progressbar.OptionSetWriter(f), progressbar.OptionSetWidth(24), progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(true),
			progressbar.OptionSetDescription("checking"))
	}
	return p
}

func (p *progress) event(e run.Event) {
	if p.quiet {
		return
	}
	if p.bar != nil {
		p.draw(e)
		return
	}
	p.print(e)
}

func (p *progress) print(e run.Event) {
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
		line := fmt.Sprintf("[%d/%d] %s %s: %s", e.Launch, e.Launches, e.Engine, launchName(e), e.Text)
		if e.Err != nil {
			line += ": " + fault.OneLine(e.Err.Error())
		}
		fmt.Fprintln(p.out, line)
	}
}

// draw changes the bar's text. The bar itself decides nothing: it is told.
func (p *progress) draw(e run.Event) {
	switch e.Kind {
	case run.Preparing:
		p.describe(e.Engine + ": " + e.Text)
	case run.Recording:
		p.describe("recording into " + e.Text)
	case run.Judged:
		_ = p.bar.Clear() // as below
		fmt.Fprintf(p.out, "%s: %s\n", e.Engine, e.Text)
	case run.Launched:
		p.bar.ChangeMax(e.Launches)
		p.describe(e.Engine + " " + launchName(e))
	case run.Entered:
		p.describe(fmt.Sprintf("%s %s: %s", e.Engine, launchName(e), e.Phase))
	case run.Generated:
		if time.Since(p.drawn) >= redraw {
			p.describe(fmt.Sprintf("%s %s: %s, token %d of %d", e.Engine, launchName(e), e.Phase, e.Token, e.Tokens))
		}
	case run.Scoring:
		if e.Token == 0 || time.Since(p.drawn) >= redraw {
			p.describe(fmt.Sprintf("%s: scoring, token %d of %d", e.Engine, e.Token, e.Tokens))
		}
	case run.Ended:
		if e.Err != nil {
			_ = p.bar.Clear() // a terminal that can't be written to is no reason to stop measuring
			fmt.Fprintf(p.out, "%s %s: %s: %s\n", e.Engine, launchName(e), e.Text, fault.OneLine(e.Err.Error()))
		}
		_ = p.bar.Set(e.Launch)
	}
}

func (p *progress) describe(text string) {
	p.bar.Describe(text)
	p.drawn = time.Now()
}

func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

func launchName(e run.Event) string {
	if e.Warmup {
		return "warm-up"
	}
	return fmt.Sprintf("%d of %d", e.Repetition, e.Repetitions)
}
