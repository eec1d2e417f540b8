package run

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"llmparity/internal/bench/prompts"
	"llmparity/internal/bench/score"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// measure sends the requests to measure.
func (a *attempt) measure(ctx context.Context) error {
	if a.cell.Traffic != nil {
		return a.drive(ctx)
	}
	return a.generate(ctx, record.Measure, a.cell.Prompt, a.cell.MaxTokens)
}

func (a *attempt) generate(ctx context.Context, p record.Phase, prompt string, n int) error {
	tokens := make([]record.Token, 0, n)
	r := engine.Request{Prompt: prompt, MaxTokens: n, Temperature: a.cell.Temperature,
		IDs: a.setup.IDs[prompt], IgnoreEOS: a.cell.engine.Caps().IgnoreEOS}
	known, asked := a.known(prompt), a.cell.InputTokens
	if p == record.Warmup && a.cell.PromptCache == record.CacheOn {
		r.Prompt, r.IDs, known, asked = turned(r.Prompt), nil, nil, 0
	}
	a.readCPU(p)
	begin, first := time.Now(), time.Duration(0)
	usage, err := a.live.session.Generate(ctx, r, func(t record.Token) {
		tokens = append(tokens, t)
		if took := time.Since(begin); first == 0 {
			first = took
			a.readCPU(p)
		} else {
			each := (took - first) / time.Duration(len(tokens)-1)
			a.needs = time.Since(a.begun) + each*time.Duration(n-len(tokens))
			if p == record.Warmup {
				a.needs += first + each*time.Duration(a.cell.MaxTokens)
			}
		}
		a.say(Event{Kind: Generated, Phase: p, Token: len(tokens), Tokens: n})
	})
	returned := time.Now()
	a.readCPU(p)
	if err != nil && len(tokens) == 0 {
		return err
	}
	q := a.rec.Request(record.Slot{}, time.Time{}, p, usage, tokens, returned)
	if err != nil {
		return err
	}
	if p == record.Warmup {
		asked = 0 // only measured lengths matter
	}
	a.lengths(asked, q, n)
	a.keepOutput(q)
	return gibberish(tokens, known)
}

// readCPU reads the CPU time of the engine's processes at the edge of a measured request: some 25 µs a process. After
// the first token the engine is already computing the next one.
func (a *attempt) readCPU(p record.Phase) {
	if p == record.Measure {
		a.live.sampler.Mark(record.MethodCPUTime)
	}
}

// known returns the model's answer to a prompt, if it is certain: by rounding or by sampling it can be another.
func (a *attempt) known(prompt string) []int {
	if a.cell.engine.Caps().Rounds || a.cell.Temperature > 0 {
		return nil
	}
	return a.setup.Expected[prompt]
}

// turned reorders the words of a prompt, so that the warm-up does not fill the prompt cache for the measured request.
func turned(prompt string) string {
	first, rest, several := strings.Cut(strings.TrimSpace(prompt), " ")
	if !several {
		return "So " + prompt
	}
	return rest + " " + first
}

// lengths warns if a request has other lengths than requested.
func (a *attempt) lengths(asked int, q *record.Request, n int) {
	if came := q.Tokened(); came != n {
		a.rec.Warn(record.Warnf("length", "requested %d tokens, received %d", n, came))
	}
	if had := q.Prompted(); asked > 0 && had > 0 && had != asked {
		a.rec.Warn(record.Warnf("input-length", "requested a prompt of %d tokens; the engine counts %d", asked, had))
	}
}

// keepOutput keeps an answered request until it is known whether its launch counts.
func (a *attempt) keepOutput(q *record.Request) {
	if q.Phase != record.Measure {
		return
	}
	a.measured = append(a.measured, q)
	if a.output == nil {
		a.output = score.OutputOf(a.rec.ID(), q)
	}
}

// gibberish returns an error if the generated tokens are not those that the model is known to generate.
func gibberish(tokens []record.Token, expected []int) error {
	for i, id := range expected {
		if i < len(tokens) && tokens[i].ID != record.NoID && tokens[i].ID != id {
			return engine.Fail(record.BadOutput,
				"token %d of %d is %d instead of %d: the engine does not compute this model correctly, or it makes up token ids",
				i+1, len(tokens), tokens[i].ID, id)
		}
	}
	return nil
}

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
