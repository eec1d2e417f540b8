package run

import (
	"context"
	"slices"
	"sync"
	"time"

	"llmparity/internal/bench/prompts"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// drive measures a cell's traffic: it sends requests when they are due, up to what the engine accepts at once. The rest
// queues here, and the record has how long.
func (a *attempt) drive(ctx context.Context) error {
	s := traffic.New(*a.cell.Traffic)
	a.warnOfTurns()
	var mu sync.Mutex // protects what concurrent requests report
	came, all := 0, a.tokens(s)
	report := traffic.Drive(ctx, s, max(1, a.cell.engine.Caps().Requests),
		func(ctx context.Context, q traffic.Request) (string, error) {
			r, asked := a.ask(q)
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
			slot := record.Slot{Late: int64(q.Late), Client: q.Client, Kind: s.KindName(q), Turn: q.Turn,
				PromptHash: record.HashOf(r.Prompt)}
			if err != nil {
				usage.Finish = record.FailedRequest
				if usage.Sent.IsZero() {
					usage.Sent = returned
				}
			}
			answer := a.rec.Request(slot, q.Due, record.Measure, usage, tokens, returned)
			if err == nil {
				a.keepOutput(answer)
				a.lengths(asked, answer, r.MaxTokens)
			}
			return r.Prompt + usage.Text, err
		})
	for _, w := range report.Warnings() {
		a.rec.Warn(w)
	}
	return a.failures(ctx, report)
}

// warnOfTurns warns if an engine recomputes earlier turns although the cache is on.
func (a *attempt) warnOfTurns() {
	if a.cell.Traffic.Turns > 1 && a.setup.Plan.Cache == record.CacheOn && a.cell.PromptCache != record.CacheOn {
		a.rec.Warn(record.Warning{Code: "turns-recomputed",
			Text: a.cell.Engine + " has no cache between raw prompts: it recomputes all earlier turns " +
				"of a conversation, so its time to first token grows with each turn"})
	}
}

// tokens returns the number of tokens that a traffic requests.
func (a *attempt) tokens(s traffic.Schedule) (n int) {
	for _, q := range s.Requests() {
		r, _ := a.ask(q)
		n += r.MaxTokens
	}
	return n
}

// ask returns a request and the requested length of its prompt; 0: none.
func (a *attempt) ask(q traffic.Request) (r engine.Request, asked int) {
	if asked = prompts.Length(a.cell.Cell, q); q.Before != "" {
		asked = 0
	}
	r = a.setup.Ask(a.cell.Cell, q)
	r.Temperature, r.IgnoreEOS = a.cell.Temperature, a.cell.engine.Caps().IgnoreEOS
	return r, asked
}

// failures judges failed requests. The attempt failed if the engine is gone or no request was answered. Otherwise they
// are a property of the load, and a warning.
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
