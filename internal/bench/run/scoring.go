package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"llmparity/internal/bench/score"
	"llmparity/internal/engine"
	"llmparity/internal/host/machine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// job is a cell whose engine is to score a text.
type job struct {
	*series
	text      *score.Output
	reference int            // the cell that generated it, or that others are compared with
	window    *record.Window // of a given text; nil: an engine generated the text
}

// of says what the job is for.
func (j job) of() string {
	if j.window != nil {
		return fmt.Sprintf("quality, window %d of %d", j.window.Number, j.window.Of)
	}
	return "parity"
}

// what names the text.
func (j job) what() string {
	if j.window != nil {
		return fmt.Sprintf("window %d of %s", j.window.Number, j.window.Text)
	}
	return fmt.Sprintf("the text of prompt %d", j.PromptID)
}

// scoreAll lets each engine score in a launch of its own, after all measurements. Failures are only warnings.
func (r *runner) scoreAll(ctx context.Context, s *current) {
	list, any := s.jobs(), false
	for i, windows := range r.windows(s) {
		any = any || len(list[i]) > 0
		list[i] = append(list[i], windows...)
	}
	for i, js := range list {
		r.toScore = r.past.unscoredTokens(slices.Concat(list[i:]...))
		if len(js) > 0 && ctx.Err() == nil && r.w.Err() == nil {
			r.scoreWith(ctx, s, js)
		}
	}
	switch {
	case any && ctx.Err() != nil && s.Plan.Quality == "": // else the run is resumed
		r.w.Warn(record.Warning{Code: "not-scored",
			Text: "scoring was interrupted after all launches: some log-probabilities are missing"})
	case !any && s.Plan.Parity != nil && *s.Plan.Parity:
		r.w.Warn(record.Warnf("not-scored", "nothing was scored: --parity needs a text of %s with token ids, and an "+
			"engine that can score", s.textOf))
	}
}

// jobs lists what to score, by engine. Every engine scores the same text of a prompt, even the text engine itself, so
// that any two can be compared at every position.
func (s *current) jobs() [][]job {
	out := make([][]job, len(s.Engines))
	for _, ref := range s.cells {
		if ref.Engine != s.textOf || ref.output == nil || s.Plan.ScoresNothing() {
			continue
		}
		of := slices.DeleteFunc(slices.Clone(s.cells),
			func(c *series) bool { return c.PromptID != ref.PromptID || !c.able() })
		differ := slices.ContainsFunc(of, func(c *series) bool { return c.output.Differs(ref.output) })
		if len(of) == 0 || s.Plan.Parity == nil && !differ {
			continue
		}
		for _, c := range of {
			i := slices.Index(s.Engines, c.engine)
			out[i] = append(out[i], job{c, ref.output, ref.ID, nil})
		}
	}
	return out
}

// able reports whether the cell's engine can score and has run.
func (c *series) able() bool { return c.engine.Caps().Scores && c.gaveUp == nil && c.output != nil }

// windows lists the windows of the plan's text for each engine that can score, under its first cell.
func (r *runner) windows(s *current) [][]job {
	out := make([][]job, len(s.Engines))
	if s.NoQuality != nil {
		r.w.Warn(record.Warnf("not-scored", "quality is not measured: %s", fault.OneLine(s.NoQuality.Error())))
	}
	if s.Quality == nil {
		return out
	}
	reference := 0
	for i, e := range s.Engines {
		cells := s.of(e)
		switch {
		case len(cells) == 0, !s.Plan.ScoresQuality(e.Name()):
			continue
		case !e.Caps().Scores:
			r.w.Warn(record.Warnf("not-scored", "%s does not score: it reports no log-probabilities of a given text",
				e.Name()))
			continue
		case e.Name() == s.textOf || reference == 0:
			reference = cells[0].ID
		}
		for n, ids := range s.Quality.IDs {
			// As llama-perplexity: the first half is only read.
			half := len(ids)/2 + 1
			out[i] = append(out[i], job{cells[0], &score.Output{PromptIDs: ids[:half], Text: ids[half:]}, 0,
				&record.Window{Text: s.Quality.Name, SHA256: s.Quality.SHA256, Number: n + 1,
					Of: len(s.Quality.IDs)}})
		}
	}
	for _, js := range out {
		for i := range js {
			js[i].reference = reference
		}
	}
	return out
}

// unscoredTokens is how many tokens of texts were not scored before.
func (p *past) unscoredTokens(js []job) (n int) {
	for _, j := range js {
		if !p.scored(j) {
			n += len(j.text.Text)
		}
	}
	return n
}

// scored reports whether a cell's engine has scored a text.
func (p *past) scored(j job) bool {
	return slices.ContainsFunc(p.Commits(j.ID), func(a *record.Attempt) bool {
		return a.Scoring != nil && !a.Scoring.Checks() && a.Status == record.OK &&
			a.Scoring.At() == (&record.Scoring{Window: j.window}).At()
	})
}

// scoreWith scores an engine's texts in one launch. Each text is an attempt in the record; the first includes the load.
func (r *runner) scoreWith(ctx context.Context, s *current, js []job) {
	q := unmeasured{&relay{model: s.Of(js[0].engine)}}
	var session engine.Session
	defer func() {
		if session != nil {
			_ = session.Close()
		}
	}()
	for _, j := range js {
		if ctx.Err() != nil {
			return
		}
		if r.past.scored(j) {
			continue
		}
		r.Progress(Event{Kind: Scoring, Text: j.of(), Engine: j.Engine, Tokens: len(j.text.Text), Left: r.toScore})
		rec := r.w.Begin(j.Cell, record.Beginning{Load1: machine.Load1(ctx),
			Scoring: &record.Scoring{Reference: j.reference, Attempt: j.text.Attempt, PromptIDs: j.text.PromptIDs,
				Tokens: len(j.text.Text), Top: score.Candidates, Window: j.window}})
		q.begin(rec)
		soon, cancel := context.WithTimeoutCause(ctx, time.Duration(s.Plan.Timeout),
			fmt.Errorf("scoring took longer than %s: %w", time.Duration(s.Plan.Timeout), context.DeadlineExceeded))
		var err error
		if session == nil {
			session, err = j.open(soon, s, q)
		}
		if err == nil {
			err = j.score(soon, r, rec, session)
		}
		if err != nil && soon.Err() != nil {
			err = fmt.Errorf("%w (%w)", context.Cause(soon), err)
		}
		cancel()
		q.end()
		status, class := outcome(ctx, err)
		rec.End(status, class, err, record.Cost{})
		if err != nil && ctx.Err() == nil {
			r.w.Warn(record.Warnf("not-scored", "%s could not score %s: %s", j.Engine, j.what(),
				fault.OneLine(err.Error())))
			return // the session may be unusable
		}
	}
}

func (j job) open(ctx context.Context, of *current, p engine.Probe) (engine.Session, error) {
	least := 0
	if j.window != nil {
		least = len(j.text.PromptIDs) + len(j.text.Text)
	}
	return j.loaded(ctx, of, p, least)
}

func (j job) score(ctx context.Context, r *runner, rec *record.Recording, session engine.Session) error {
	s, ok := session.(engine.Scorer)
	if !ok {
		return errors.New("the engine claims that it can score, but its session can't")
	}
	n := 0
	return s.Score(ctx, engine.Forced{Prompt: j.text.PromptIDs, IDs: j.text.Text, Top: score.Candidates,
		Whole: j.window != nil},
		func(sc record.Score) {
			rec.Score(sc)
			if j.window == nil {
				j.likely = append(j.likely, sc.Top[0].ID, sc.Top[1].ID)
			}
			n++
			r.toScore--
			r.Progress(Event{Kind: Scoring, Text: j.of(), Engine: j.Engine, Token: n, Tokens: len(j.text.Text),
				Left: r.toScore})
		})
}

// seen lists the tokens whose texts a reader may need: those generated and those that scored high.
func seen(all []*series) []int {
	var ids []int
	for _, c := range all {
		if c.output != nil {
			ids = append(append(ids, c.output.PromptIDs...), c.output.Text...)
		}
		ids = append(ids, c.likely...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
