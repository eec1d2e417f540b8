package run

import (
	"context"
	"slices"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/traffic"
)

// drive measures a cell's traffic: its requests go out as they are due, as many at once as the engine can do. What is
// more than that waits here, and the record has how long.
func (a *attempt) drive(ctx context.Context) error {
	s, err := traffic.New(*a.cell.Traffic)
	if err != nil {
		return err
	}
	a.warnOfTurns()
	var mu sync.Mutex // over what requests that go on at once tell
	came, all := 0, a.tokens(s)
	if p, ok := a.live.session.(engine.Primer); ok {
		if err := p.Prime(ctx, a.prompts(s)); err != nil {
			return err
		}
	}
	report := traffic.Drive(ctx, s, max(1, a.cell.engine.Caps().Requests),
		func(ctx context.Context, q traffic.Request) (string, error) {
			r, asked := a.ask(s, q)
			var tokens []record.Token
			usage, err := a.live.session.Generate(ctx, r, func(t record.Token) {
				tokens = append(tokens, t)
				mu.Lock()
				came++
				n := came
				mu.Unlock()
				a.say(Event{Kind: Generated, Phase: record.Measure, Token: n, Tokens: all})
			})
			returned := time.Now()
			if err == nil {
				err = gibberish(tokens, a.known(r.Prompt))
			}
			mu.Lock()
			defer mu.Unlock()
			slot := record.Slot{Late: int64(q.Late), Client: q.Client, Kind: s.KindName(q), Turn: q.Turn}
			if err != nil {
				usage.Finish = record.FailedRequest
				if usage.Sent.IsZero() {
					usage.Sent = returned
				}
			}
			answer := a.rec.RequestIn(slot, q.Due, record.Measure, usage, tokens, returned)
			if err == nil {
				a.saw(answer)
				a.lengths(asked, answer, r.MaxTokens)
			}
			return r.Prompt + usage.Text, err
		})
	for _, w := range report.Warnings() {
		a.rec.Warn(w)
	}
	return a.failures(ctx, report)
}

// warnOfTurns tells of an engine that computes again all that was said before, where it was to keep it.
func (a *attempt) warnOfTurns() {
	if a.cell.Traffic.Turns > 1 && a.setup.Plan.Cache == record.CacheOn && a.cell.PromptCache != record.CacheOn {
		a.rec.Warn(record.Warning{Code: "turns-recomputed",
			Text: a.cell.Engine + " keeps nothing from one raw prompt to the next: in each turn of a " +
				"conversation it computes again all that was said before, and its time to first token grows with that"})
	}
}

// tokens is how many a traffic asks for.
func (a *attempt) tokens(s traffic.Schedule) (n int) {
	for _, q := range s.Requests() {
		r, _ := a.ask(s, q)
		n += r.MaxTokens
	}
	return n
}

// prompts are those that are known before anything was answered.
func (a *attempt) prompts(s traffic.Schedule) (all []string) {
	for _, q := range s.Requests() {
		if q.Turn < 2 {
			r, _ := a.ask(s, q)
			all = append(all, r.Prompt)
		}
	}
	return all
}

// ask says what a request asks, and how long its prompt was to be; 0: nobody said.
func (a *attempt) ask(s traffic.Schedule, q traffic.Request) (r engine.Request, asked int) {
	c := &a.cell.Cell
	r, asked = engine.Request{Prompt: c.Prompt, MaxTokens: c.MaxTokens}, c.InputTokens
	if q.Kind < len(c.Traffic.Mix) {
		k := c.Traffic.Mix[q.Kind]
		asked = k.InputTokens
		if k.Prompt != "" {
			r.Prompt = k.Prompt
		}
		if k.MaxTokens > 0 {
			r.MaxTokens = k.MaxTokens
		}
	}
	if q.Conversation < len(c.Traffic.Trace) {
		asked, r.MaxTokens = c.Traffic.Trace[q.Conversation].InputTokens, c.Traffic.Trace[q.Conversation].MaxTokens
	}
	if q.Before != "" {
		r.Prompt, asked = q.Before+"\n"+r.Prompt, 0
	}
	if a.setup.Ask != nil {
		r = a.setup.Ask(*c, q)
	}
	r.Temperature, r.IgnoreEOS = c.Temperature, a.cell.engine.Caps().IgnoreEOS
	return r, asked
}

// failures says what requests that were not answered mean for the attempt: where the engine is gone, or none was
// answered, it failed; else it is warned of, for a request that fails under a load is a figure of that load.
func (a *attempt) failures(ctx context.Context, report traffic.Report) error {
	err := report.Err()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	gone := []record.Class{record.Crash, record.OOM, record.DeviceLost, record.Hung, record.BadOutput}
	answered := false
	for _, o := range report.Outcomes {
		if slices.Contains(gone, engine.ClassOf(o.Err)) {
			return err
		}
		answered = answered || o.Err == nil
	}
	if !answered {
		return err
	}
	a.rec.Warn(record.Warning{Code: "request-failed", Text: err.Error()})
	return nil
}
