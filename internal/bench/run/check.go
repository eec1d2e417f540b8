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
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

// checked is which score checks of a setup are recorded.
type checked struct {
	engines     map[engine.Engine]bool
	first       *series // whose check was first
	ids         []int   // its text
	arithmetics [][]rounding.Arithmetic
	anchored    bool // the reference implementation computed the text, or could not
}

// checkScores lets the engine of a warm-up launch score the text of the check, if there is one. It reports whether the
// session is usable afterwards. A failure is only a warning, unless the run ends.
func (a *attempt) checkScores(ctx context.Context) (usable bool, err error) {
	a.offerText(a.setup, a.cell, a.output)
	scorer, able := a.live.session.(engine.Scorer)
	text := a.checkText(a.setup)
	if ids, _, _ := text.Within(a.setup.Plan.Context); !able || !a.setup.checks(a.cell.engine) || ids == nil {
		return true, nil
	}
	err = a.scoreCheck(ctx, a.setup, a.cell, text, a.live.relay, scorer)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return false, err
	}
	return err == nil, nil
}

// offerText makes what the text engine generated the text of score checks, unless there is one.
func (r *runner) offerText(s *current, c *series, o *score.Output) {
	if o == nil || c.Engine != s.textOf || r.texts[s.Plan.Model] != nil {
		return
	}
	if r.texts == nil {
		r.texts = map[string]*score.Check{}
	}
	r.texts[s.Plan.Model] = &score.Check{Of: "the output of " + c.Engine, IDs: slices.Concat(o.PromptIDs, o.Text)}
}

// checkText returns the text for a setup's score checks: the model's own, else what the text engine generated first;
// nil if there is none yet.
func (r *runner) checkText(s *current) *score.Check {
	if s.CheckText != nil {
		return s.CheckText
	}
	return r.texts[s.Plan.Model]
}

// checks reports whether an engine's scores are still to be checked in a setup.
func (s *current) checks(e engine.Engine) bool {
	return s.Plan.Checks() && e.Caps().Scores && !s.checked.engines[e]
}

// scoreCheck lets an engine score the text of the check, and records it as an attempt of its own.
func (r *runner) scoreCheck(ctx context.Context, s *current, c *series, text *score.Check, of *relay,
	scorer engine.Scorer) error {
	ids, from, steps := text.Within(s.Plan.Context)
	info, device := of.ran()
	check := &record.ScoreCheck{Text: text.Of, IDs: ids, AsPrompt: steps - from}
	for _, a := range rounding.Of(info, device, c.Model) {
		check.Arithmetic = append(check.Arithmetic, string(a))
	}
	r.Progress(Event{Kind: Scoring, Text: checkName, Engine: c.Engine, Tokens: len(ids) - from})
	rec := r.w.Begin(c.Cell, record.Beginning{Load1: machine.Load1(ctx), Scoring: &record.Scoring{Reference: c.ID,
		PromptIDs: ids[:from], Tokens: len(ids) - from, Top: score.Candidates, Check: check}})
	err := score.Parts(ctx, scorer, ids, from, steps, func(sc record.Score) {
		c.likely = append(c.likely, sc.Top[0].ID, sc.Top[1].ID)
		rec.Score(sc)
		r.Progress(Event{Kind: Scoring, Text: checkName, Engine: c.Engine, Token: sc.Position + 1,
			Tokens: len(ids) - from})
	})
	status, class := outcome(ctx, err)
	rec.End(status, class, err, record.Cost{})
	if err == nil {
		s.keepCheck(c, check)
	} else if ctx.Err() == nil || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		r.w.Warn(record.Warnf("not-scored", "%s could not score the text of the score check: %s", c.Engine,
			fault.OneLine(err.Error())))
	}
	return err
}

// ran returns the session's last reports about its engine and its device; nil if there are none.
func (r *relay) ran() (info *record.EngineInfo, device *record.Device) {
	defer r.lock()()
	for _, e := range r.events {
		if e.Engine != nil {
			info = e.Engine
		}
		if e.Device != nil {
			device = e.Device
		}
	}
	return info, device
}

const checkName = "the score check"

// keepCheck keeps that an engine's scores are recorded.
func (s *current) keepCheck(c *series, check *record.ScoreCheck) {
	done := &s.checked
	if done.engines == nil {
		done.engines, done.first, done.ids = map[engine.Engine]bool{}, c, check.IDs
	}
	done.engines[c.engine] = true
	var all []rounding.Arithmetic
	for _, a := range check.Arithmetic {
		all = append(all, rounding.Arithmetic(a))
	}
	if !slices.ContainsFunc(done.arithmetics, func(o []rounding.Arithmetic) bool { return slices.Equal(o, all) }) {
		done.arithmetics = append(done.arithmetics, all)
	}
}

// restoreChecks restores the score checks that a setup made before the run was resumed.
func (p *past) restoreChecks(r *runner, s *current, c *series) {
	for _, a := range p.Commits(c.ID) {
		if !a.Scoring.Checks() || a.Status != record.OK {
			continue
		}
		if a.Scoring.Anchored() {
			s.checked.anchored = true
			continue
		}
		s.keepCheck(c, a.Scoring.Check)
		if s.CheckText == nil && r.texts[s.Plan.Model] == nil {
			r.texts = map[string]*score.Check{s.Plan.Model: {Of: a.Scoring.Check.Text, IDs: a.Scoring.Check.IDs}}
		}
	}
}

// checkLate checks the engines that no warm-up launch checked, each in a launch of its own.
func (r *runner) checkLate(ctx context.Context, s *current) {
	for _, c := range s.cells {
		r.offerText(s, c, c.output)
	}
	text := r.checkText(s)
	if ids, _, _ := text.Within(s.Plan.Context); ids == nil {
		return
	}
	for _, e := range s.Engines {
		cells := slices.DeleteFunc(s.of(e), func(c *series) bool { return !c.ran })
		if len(cells) == 0 || !s.checks(e) || ctx.Err() != nil || r.w.Err() != nil {
			continue
		}
		if err := r.checkAlone(ctx, s, cells[0], text); err != nil && ctx.Err() == nil {
			r.w.Warn(record.Warnf("not-scored", "%s could not make the score check: %s", e.Name(),
				fault.OneLine(err.Error())))
		}
	}
}

// checkAlone launches an engine for its score check alone.
func (r *runner) checkAlone(ctx context.Context, s *current, c *series, text *score.Check) (err error) {
	q := unmeasured{&relay{model: s.Of(c.engine)}}
	limit := time.Duration(s.Plan.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s: %w", limit,
		context.DeadlineExceeded))
	defer cancel()
	session, err := c.loaded(ctx, s, q, 0)
	if session != nil {
		defer func() { _ = session.Close() }()
	}
	if err != nil {
		return err
	}
	if scorer, able := session.(engine.Scorer); able {
		_ = r.scoreCheck(ctx, s, c, text, q.relay, scorer) // it has warned
	}
	return nil
}

// unmeasured is the probe of a session that only scores: it records reports and reads no sources.
type unmeasured struct{ *relay }

// Attach reads nothing.
func (unmeasured) Attach(s sample.Source) (detach func()) { return engine.Unmeasured{}.Attach(s) }

// loaded opens the cell's engine and loads its model with a context of at least so many tokens.
func (c *series) loaded(ctx context.Context, of *current, p engine.Probe, least int) (engine.Session, error) {
	s, err := c.engine.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	model := of.Of(c.engine)
	if model.Context = of.Plan.Context; model.Context > 0 {
		model.Context = max(model.Context, least)
	}
	return s, s.Load(ctx, model)
}

// anchor lets the reference implementation compute the text that a setup's engines have scored.
func (r *runner) anchor(ctx context.Context, s *current) {
	done := &s.checked
	if !s.Anchored || done.first == nil || done.anchored || ctx.Err() != nil || r.w.Err() != nil {
		return
	}
	done.anchored = true
	c := done.first
	ids, from, steps := (&score.Check{IDs: done.ids}).Within(s.Plan.Context)
	r.Progress(Event{Kind: Scoring, Text: checkName, Engine: "reference", Tokens: len(ids) - from})
	a, err := s.Anchor(ctx, ids, from, done.arithmetics)
	if err != nil {
		if ctx.Err() == nil {
			r.w.Warn(record.Warnf("not-scored", "the reference implementation could not make the score check: %s",
				fault.OneLine(err.Error())))
		}
		return
	}
	rec := r.w.Begin(c.Cell, record.Beginning{Load1: machine.Load1(ctx), Scoring: &record.Scoring{Reference: c.ID,
		PromptIDs: ids[:from], Tokens: len(ids) - from, Top: score.Candidates,
		Check: &record.ScoreCheck{Text: "llmparity's reference implementation", IDs: ids, AsPrompt: steps - from,
			Anchor: &a.Anchor}}})
	for _, sc := range a.Scores {
		rec.Score(sc)
	}
	rec.End(record.OK, "", nil, record.Cost{})
}
