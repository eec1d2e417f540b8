package resolve

import (
	"slices"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Scoring is what an engine scores of the plan's text with a setup's model, in a launch after all measurements.
type Scoring struct {
	Setup         int
	Engine, Model string   // names in records
	Windows       int      // 0: unknown, because the model is not here
	Seconds       *float64 // from earlier runs of the engine with the model; nil: unknown
}

// scorings predicts what each engine that can run and score takes for the plan's text.
func (r *Resolver) scorings(out *Resolved, s *Chosen) {
	if s.Plan.Quality == "" || s.err != nil {
		return
	}
	text, err := r.quality(s.Plan.Quality, s.Model)
	for at, e := range s.launch.set.engines {
		runs := slices.ContainsFunc(s.Cells, func(c record.Cell) bool {
			return c.Engine == s.Plan.Engines[at] && out.Answers[c.ID-1].Verdict.Answer != engine.Refused
		})
		if !runs || e.Err != nil || !e.Caps().Scores || !s.Plan.ScoresQuality(e.Name()) {
			continue
		}
		will := Scoring{Setup: s.ID, Engine: e.Name(), Model: s.Model.Name}
		if err == nil {
			will.Windows = len(text.IDs)
			if seconds, known := r.history().scoring(pastKey{e.Name(), s.Model.Name}, text.IDs); known {
				will.Seconds = &seconds
			}
		}
		out.Scorings = append(out.Scorings, will)
	}
}

// takeScoring adds the time of a window. A launch's first one includes the load, but the median over windows does not.
func (h history) takeScoring(key pastKey, a *record.Attempt) {
	n := len(a.Scoring.PromptIDs) + a.Scoring.Tokens
	if a.Status != record.OK || a.Scoring.Window == nil || a.Scoring.Checks() || n == 0 {
		return
	}
	p := h.at(key)
	p.perScored = append(p.perScored, float64(a.EndNS-a.BeginNS)/1e9/float64(n))
}

// scoring predicts how long windows take with a load: by earlier windows, else by the speed of earlier launches, since
// half of a window is read as a prompt is and the other half is forced token by token.
func (h history) scoring(key pastKey, windows [][]int) (seconds float64, known bool) {
	p, tokens := h[key], 0
	for _, w := range windows {
		tokens += len(w)
	}
	if p == nil || len(p.perScored) == 0 {
		return h.of(key, 1, tokens/2, tokens-tokens/2)
	}
	if len(p.around) > 0 {
		seconds = stats.Median(p.around)
	}
	return seconds + float64(tokens)*stats.Median(p.perScored), true
}
