package resolve

import (
	"fmt"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/words"
)

// Seconds with SwiftShader on two cores, to load a model of 134.5 million parameters and for each token of prompt and
// output. The highest were measured beside 29 other busy processes: 174 s and 1.6 s; 1.8 s in float32. An idle machine
// should be several times as fast, which was not measured.
const (
	ofParameters       = 134.5e6
	leastLoad, aLoad   = 10, 180.0
	leastToken, aToken = 0.25, 2.5
)

// noteworthy is the time from which a launch is announced.
const noteworthy = time.Minute

// slow says how long a launch takes with WebGPU on the CPU, if that is long: by earlier launches, else by the model's
// size. It does so once for an engine and a model, and for the longest request of the setup.
func (r *Resolver) slow(s *Setup, at int) string {
	e := s.launch.set.engines[at]
	m := e.form(s.Model)
	if held := e.Kind.Holds(e.Engine, m); held.As == nil || held.As.Runtime != engine.MLC || held.OnGPU {
		return ""
	}
	past := pastKey{e.Name(), s.Model.Name}
	text, _ := once(r.cache, [2]any{"slow", past}, func() (string, error) {
		tokens, known, took := 0, false, 0.0
		for i := range s.Shapes {
			prompt, generated := r.tokens(&s.Shapes[i], s)
			seconds, ok := r.history().of(past, 1, prompt, generated)
			took, known = max(took, seconds), ok
			warm := prompt/Requests(&s.Shapes[i]) + s.Plan.Warmup.Tokens
			tokens = max(tokens, prompt+generated+warm)
		}
		limit := time.Duration(s.Plan.Timeout)
		say := func(high float64, text string) string {
			most := time.Duration(high * float64(time.Second))
			if most < noteworthy {
				return ""
			}
			if most > limit {
				text += fmt.Sprintf("; the time limit is %s: use --timeout %s", words.Timeout(limit), words.Timeout(most))
			}
			return text
		}
		if known {
			return say(1.5*took, fmt.Sprintf("%s: a launch takes about %s, judging by earlier runs", e.Name(),
				time.Duration(took)*time.Second)), nil
		}
		size := float64(m.Parameters) / ofParameters
		high := size * (aLoad + aToken*float64(tokens))
		return say(high, fmt.Sprintf("%s: WebGPU runs on the CPU. With %s of weights and %d tokens, warm-up included, "+
			"a launch takes roughly %.1f to %.0f min (predicted)", e.Name(), words.Size(m.WeightsB), tokens,
			size*(leastLoad+leastToken*float64(tokens))/60, high/60)), nil
	})
	return text
}

// history returns the durations of earlier launches, read once.
func (r *Resolver) history() history {
	h, _ := once(r.cache, "history", func() (history, error) { return pastRuns(r.Results), nil })
	return h
}
