package progress

import (
	"fmt"
	"slices"
	"time"

	"llmparity/internal/bench/run"
)

// pace computes from the events of a run how fast tokens come and how long the rest may take.
type pace struct {
	left    int       // launches to come, including the current one
	opened  time.Time // start of the current launch; zero: none
	first   time.Time // first token of the current phase
	tokens  int       // tokens of the current phase
	memory  int64     // at the last reading
	engines map[string]spent
	scoring scoring
	toScore []Scoring // predicted, in order, of what has not begun
}

// Scoring is how long an engine is predicted to score the plan's text, after a setup's launches.
type Scoring struct {
	Setup  int
	Engine string
	Takes  time.Duration
}

// scoring is the pace of texts that an engine scores, after all launches.
type scoring struct {
	engine string // empty: nothing is scored
	setup  int    // of the text; 0: unknown
	texts  int    // of this engine, with the current one
	from   time.Time
	tokens int       // since from
	end    time.Time // predicted for all that is to be scored in the setup; zero: unknown
}

// began drops the prediction of what begins, and of what was left out before it. The rest of the setup is in tokens.
func (p *pace) began(e run.Event, now time.Time) {
	at := slices.IndexFunc(p.toScore, func(s Scoring) bool { return s.Engine == e.Engine })
	if at < 0 {
		return
	}
	setup, end := p.toScore[at].Setup, now.Add(p.toScore[at].Takes)
	p.toScore = p.toScore[at+1:]
	for _, s := range p.toScore {
		if s.Setup == setup {
			end = end.Add(s.Takes)
		}
	}
	p.scoring.setup, p.scoring.end = setup, end
}

// later is the predicted time of scoring after the current setup's, or of all while none is scored.
func (p *pace) later() (all time.Duration) {
	for _, s := range p.toScore {
		if p.scoring.engine == "" || s.Setup != p.scoring.setup {
			all += s.Takes
		}
	}
	return all
}

// take predicts the end whenever a text is complete, because some engines report all tokens of a text at once. The
// first text of an engine includes the load.
func (s *scoring) take(e run.Event, now time.Time) {
	switch {
	case e.Token == 0 && e.Engine != s.engine:
		*s = scoring{engine: e.Engine, texts: 1, from: now}
	case e.Token == 0:
		if s.texts++; s.texts == 2 {
			s.from, s.tokens = now, 0
		}
	default:
		s.tokens++
	}
	if e.Token > 0 && e.Token == e.Tokens {
		s.end = now.Add(now.Sub(s.from) / time.Duration(s.tokens) * time.Duration(e.Left))
	}
}

// spent is the time of one engine's launches. Engines differ, and a round of them may be incomplete.
type spent struct {
	launches int
	took     time.Duration
}

// take updates the pace.
func (p *pace) take(e run.Event, now time.Time) {
	switch e.Kind {
	case run.Scoring:
		begins := e.Token == 0 && e.Engine != p.scoring.engine
		if p.scoring.take(e, now); begins {
			p.began(e, now)
		}
	case run.Launched:
		p.scoring = scoring{}
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
			break // a refused cell: its time says nothing about launches
		}
		if p.engines == nil {
			p.engines = map[string]spent{}
		}
		of := p.engines[e.Engine]
		p.engines[e.Engine] = spent{of.launches + 1, of.took + now.Sub(p.opened)}
		p.opened = time.Time{}
	}
	if e.Memory > 0 && e.Kind != run.Launched { // then it is still the previous launch's
		p.memory = e.Memory
	}
}

// rate is the tokens per second of the current phase, of all requests together; 0: not yet known.
func (p *pace) rate(now time.Time) float64 {
	if p.tokens < 2 || !now.After(p.first) {
		return 0
	}
	return float64(p.tokens-1) / now.Sub(p.first).Seconds()
}

// rest predicts how long the remaining launches take, from the mean time of those that ended. Every engine has the same
// weight, because a run that has only had a fast engine's launches would promise too little. It is unknown before the
// first launch has ended, and of texts to score before an engine has scored one, unless it was predicted.
func (p *pace) rest(now time.Time) (time.Duration, bool) {
	if s := &p.scoring; s.engine != "" {
		return max(s.end.Sub(now), 0) + p.later(), !s.end.IsZero()
	}
	if len(p.engines) == 0 {
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
	return max(rest, 0) + p.later(), true
}

// roughly rounds a duration: seconds do not matter in hours.
func roughly(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
