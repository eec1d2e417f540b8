package progress

import (
	"fmt"
	"time"

	"llmparity/internal/run"
)

// pace is the progress of a run, from its events: how fast tokens come, and how long the rest may take.
type pace struct {
	done    int       // launches that this program has ended
	left    int       // launches that are to come, with the one that goes on
	opened  time.Time // the launch that goes on; zero: none does
	first   time.Time // token of the phase that goes on
	tokens  int       // that came since
	memory  int64     // at the last reading
	engines map[string]*spent
}

// spent is what launches of an engine took: engines differ, and rounds of them are not always whole.
type spent struct {
	launches int
	took     time.Duration
}

// take has an event change it.
func (p *pace) take(e run.Event, now time.Time) {
	switch e.Kind {
	case run.Launched:
		p.opened, p.left, p.tokens, p.memory = now, e.Launches-e.Launch+1, 0, 0
	case run.Entered:
		p.tokens = 0
	case run.Generated:
		if p.tokens == 0 {
			p.first = now
		}
		p.tokens++
	case run.Ended:
		if p.left, p.tokens = e.Launches-e.Launch, 0; p.opened.IsZero() {
			break // its cell was refused: nothing was launched, and nothing is known of how long others take
		}
		if p.engines == nil {
			p.engines = map[string]*spent{}
		}
		of := p.engines[e.Engine]
		if of == nil {
			of = &spent{}
			p.engines[e.Engine] = of
		}
		of.launches, of.took = of.launches+1, of.took+now.Sub(p.opened)
		p.done++
		p.opened = time.Time{}
	}
	if e.Memory > 0 {
		p.memory = e.Memory
	}
}

// rate is how many tokens a second come in the phase that goes on, of all requests together; 0: not yet known.
func (p *pace) rate(now time.Time) float64 {
	if p.tokens < 2 || !now.After(p.first) {
		return 0
	}
	return float64(p.tokens-1) / now.Sub(p.first).Seconds()
}

// rest is how long the launches that are to come will take if they are, on the whole, as those were that ended: each
// engine counts as much as the others, for a run that stops after an engine's quick launches would promise too little.
// Nothing is known before the first has ended.
func (p *pace) rest(now time.Time) (time.Duration, bool) {
	if p.done == 0 {
		return 0, false
	}
	var mean time.Duration
	for _, of := range p.engines {
		mean += of.took / time.Duration(of.launches)
	}
	mean /= time.Duration(len(p.engines))
	rest := mean * time.Duration(p.left)
	if !p.opened.IsZero() {
		rest -= min(now.Sub(p.opened), mean)
	}
	return max(rest, 0), true
}

// aside is what stands behind the name of the phase.
func (p *pace) aside(now time.Time) string {
	text := ""
	if rate := p.rate(now); rate > 0 {
		text += fmt.Sprintf(", %.3g tokens/s", rate)
	}
	if p.memory > 0 {
		text += fmt.Sprintf(", %.0f MiB", float64(p.memory)/(1<<20))
	}
	if rest, known := p.rest(now); known {
		text += fmt.Sprintf(", %s left", roughly(rest))
	}
	return text
}

// roughly is a duration as one says it: nobody plans by seconds of hours.
func roughly(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
