package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

const idleFor = 300 * time.Millisecond // what stays when nothing is asked

// attempt is one launch: from Open to Close.
type attempt struct {
	options Options
	cell    *cell
	dir     string // the run's folder
	rec     *record.Recording
	say     func(Event)

	totals  *totals
	sampler *sample.Sampler
	session engine.Session
}

// run carries the launch out and commits it to the record, whatever happens.
func (a *attempt) run(parent context.Context) error {
	defer a.close() // again, for a panic: what we started must go then too
	ctx, cancel := context.WithTimeoutCause(parent, time.Duration(a.options.Plan.Timeout),
		fmt.Errorf("the launch took longer than %s: %w", time.Duration(a.options.Plan.Timeout), context.DeadlineExceeded))
	defer cancel()
	cpu := selfCPU()
	a.totals = &totals{Recording: a.rec}
	a.sampler = sample.New(ctx, a.totals)
	err := a.phases(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	cost := a.sampler.Stop()
	err = errors.Join(err, a.close())
	cost.SelfCPUNS = int64(selfCPU() - cpu)
	status, class := outcome(parent, err)
	a.rec.End(status, class, err, cost)
	a.say(Event{Kind: Ended, Text: string(status), Err: err})
	return err
}

func (a *attempt) close() error {
	if a.session == nil {
		return nil
	}
	return a.session.Close()
}

func outcome(parent context.Context, err error) (record.Status, record.Class) {
	switch {
	case err == nil:
		return record.OK, ""
	case parent.Err() != nil:
		return record.Interrupted, record.Cancelled
	}
	class := engine.ClassOf(err)
	var f *fault.Error
	if class == record.Other && errors.As(err, &f) {
		class = record.SetUp
	}
	return record.Failed, class
}

// phases goes through the launch.
func (a *attempt) phases(ctx context.Context) (err error) {
	e := a.cell.engine
	if a.session, err = e.Open(ctx, probe{a.rec, a.sampler}); err != nil {
		return err
	}
	a.markProfiled()
	if e.Caps().Resident {
		a.sampler.Edge("")
		if err := a.phase(ctx, record.Baseline, func() error { return a.settle(ctx) }); err != nil {
			return err
		}
	}
	model := a.options.Model
	model.Context = a.options.Plan.Context
	for _, step := range []struct {
		phase record.Phase
		do    func() error
	}{
		{record.Load, func() error { return a.session.Load(ctx, model) }},
		{record.Warmup, func() error {
			return a.generate(ctx, record.Warmup, min(a.options.Plan.Warmup.Tokens, a.cell.MaxTokens))
		}},
		{record.Measure, func() error { return a.generate(ctx, record.Measure, a.cell.MaxTokens) }},
		{record.Idle, func() error { return pause(ctx, idleFor) }},
		{record.Unload, func() error { return a.session.Unload(ctx) }},
	} {
		if err := a.phase(ctx, step.phase, step.do); err != nil {
			return err
		}
	}
	return nil
}

// phase does what a phase is for. The reading at its end lies outside the time of a phase whose length is a figure, and within
// one that only waits: that reading is what the wait was for.
func (a *attempt) phase(ctx context.Context, p record.Phase, do func() error) error {
	a.say(Event{Kind: Entered, Phase: p})
	defer a.profile(ctx, p)()
	begin := time.Now()
	err := do()
	waits := p == record.Baseline || p == record.Idle
	if waits {
		a.sampler.Edge(p)
	}
	a.rec.Phase(p, begin, time.Now())
	if !waits {
		a.sampler.Edge(p)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	return nil
}

func (a *attempt) generate(ctx context.Context, p record.Phase, n int) error {
	tokens := make([]record.Token, 0, n)
	r := engine.Request{Prompt: a.cell.Prompt, MaxTokens: n, Temperature: a.cell.Temperature, IgnoreEOS: a.cell.engine.Caps().IgnoreEOS}
	usage, err := a.session.Generate(ctx, r, func(t record.Token) {
		tokens = append(tokens, t)
		a.say(Event{Kind: Generated, Phase: p, Token: len(tokens), Tokens: n})
	})
	if err != nil && len(tokens) == 0 {
		return err
	}
	a.rec.Request(p, usage, tokens, time.Now())
	if err == nil && len(tokens) != n {
		a.rec.Warn(record.Warning{Code: "length", Text: fmt.Sprintf("%d tokens were asked for and %d came", n, len(tokens))})
	}
	if err == nil {
		err = gibberish(tokens, a.options.Expected[a.cell.Prompt])
	}
	return err
}

// gibberish is an error where what was generated is not what the model says.
func gibberish(tokens []record.Token, expected []int) error {
	for i, id := range expected {
		if i < len(tokens) && tokens[i].ID != id {
			return engine.Fail(record.BadOutput, "token %d of %d is %d, and the model says %d: what the engine computes is not this model",
				i+1, len(tokens), tokens[i].ID, id)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// probe hands what an engine tells to the record and the sampler.
type probe struct {
	rec     *record.Recording
	sampler *sample.Sampler
}

func (p probe) Attach(s sample.Source) (detach func()) { return p.sampler.Attach(s) }
func (p probe) Span(s record.Span)                     { p.rec.Span(s) }
func (p probe) Event(e record.Event)                   { p.rec.Event(e) }
func (p probe) Warn(w record.Warning)                  { p.rec.Warn(w) }
func (p probe) Log(name string) io.WriteCloser         { return p.rec.Log(name) }
