package protocol

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Generate requests a continuation.
func (s *session) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	c, done, err := s.use()
	if err != nil {
		return record.Usage{}, err
	}
	defer done()
	g := &generation{conn: c, hello: s.hello, request: r, Text: engine.Text{Token: token}}
	if s.engine.config.Batch > 1 {
		return s.batched(ctx, c, g)
	}
	got, k, err := c.ask(ctx, opGenerate, asked(r), g.take)
	if err == nil {
		s.held.set(got.Held)
	}
	return s.generated(ctx, g, k, got.message, err)
}

// generated completes a generation of which the last message has arrived, or that has failed.
func (s *session) generated(ctx context.Context, g *generation, k *call, got message, err error) (record.Usage, error) {
	if k != nil {
		g.usage.Sent = k.sent
	}
	g.usage.Text = g.String()
	to, timed := "token's line read", g.N
	if g.hello.Clock != "" {
		to = "token by the engine's reading of the shared clock"
	}
	switch {
	case g.atOnce():
		timed = 0
	case !g.hello.Caps.Exact: // a piece may be several
		timed = g.request.MaxTokens
	}
	g.usage.Spans = g.Spans(g.usage.Sent, timed, "request written to first "+to, "first to last "+to)
	if err == nil {
		err = g.finish(got, s.context, s.probe)
	}
	if err == nil && g.atOnce() {
		s.warnOnce("tokens-at-once", "%s delivered %d tokens in %d write(s), long after the first was generated: decode is "+
			"unknown, and the time to first token is that of the first write; the engine should flush its output after "+
			"each line, or send t_ns", s.engine.Name(), g.N, g.reads)
	}
	if err != nil {
		s.tell(ctx, g.conn)
		if ctx.Err() != nil {
			g.usage.Finish = "cancelled"
		}
	}
	return g.usage, ended(ctx, "generating", err)
}

// asked are the fields of a request for one generation.
func asked(r engine.Request) fields {
	f := fields{"prompt": r.Prompt, "max_tokens": r.MaxTokens, "temperature": r.Temperature, "ignore_eos": r.IgnoreEOS}
	if r.IDs != nil {
		f["prompt_ids"] = r.IDs
	}
	return f
}

// generation is a request and its result.
type generation struct {
	conn    *conn
	hello   message
	request engine.Request
	usage   record.Usage
	engine.Text

	read         time.Time // when the last token was read
	reads        int       // reads that returned tokens
	withTheFirst int       // tokens in the first of them
}

// take processes a token or a piece of text.
func (g *generation) take(k *call, r received) error {
	if r.Event != evToken {
		return nil
	}
	id := record.NoID
	switch ids := g.hello.Caps.IDs; {
	case g.N == g.request.MaxTokens:
		return fmt.Errorf("token %d of a generation of %d", g.N+1, g.N)
	case ids && r.Token == nil:
		return fmt.Errorf(`token %d lacks "token", although hello has "ids"`, g.N)
	case !ids && r.Token != nil:
		return fmt.Errorf(`token %d has %d in "token", although hello lacks "ids"`, g.N, *r.Token)
	case ids:
		id = *r.Token
	}
	at, err := g.stamp(k, r)
	if err != nil {
		return err
	}
	if !r.at.Equal(g.read) {
		g.read = r.at
		g.reads++
	}
	if g.reads == 1 {
		g.withTheFirst++
	}
	g.WriteString(r.Text)
	g.Tell(id, at)
	return nil
}

// stamp returns the time of a token: the engine's own time if it announced a clock.
func (g *generation) stamp(k *call, r received) (time.Time, error) {
	switch {
	case g.hello.Clock == "" && r.NS == nil:
		return r.at, nil
	case g.hello.Clock == "":
		return r.at, fmt.Errorf(`token %d has "t_ns", although hello has no "clock"`, g.N)
	case r.NS == nil:
		return r.at, fmt.Errorf(`token %d lacks "t_ns", although hello has a "clock"`, g.N)
	}
	after := k.sent
	if g.N > 0 {
		after = g.Last
	}
	at, err := g.conn.clock.time(*r.NS, after, r.at)
	if err != nil {
		return at, fmt.Errorf("token %d: %w", g.N, err)
	}
	return at, nil
}

// slowly is the duration above which tokens read together mean that the engine buffers its output; below it, our own
// reading may have been delayed.
const slowly = 50 * time.Millisecond

// atOnce reports whether tokens were buffered by the engine, so that their times are wrong. Decode begins when the
// first token is read. If a tenth of all tokens are read with it, decode is a tenth too fast.
func (g *generation) atOnce() bool {
	return g.hello.Clock == "" && g.N > 1 && g.Last.Sub(g.usage.Sent) >= slowly && g.reads*4 <= g.N &&
		g.withTheFirst*10 > g.N
}

// finish reads the last line, which has the engine's counts.
func (g *generation) finish(m message, context int, p engine.Probe) error {
	g.usage.Finish, g.usage.PromptIDs, g.usage.PromptTokens = m.Finish, m.PromptIDs, m.PromptTokens
	g.usage.CachedTokens, g.usage.Generated = m.cached(), m.Generated
	if g.hello.Caps.PromptCache && m.CachedTokens == nil {
		g.usage.CachedTokens = record.CacheUnknown
	}
	g.usage.Reported = map[string]float64{}
	maps.Copy(g.usage.Reported, m.Reported)
	for name, n := range map[string]int{"prompt_tokens": m.PromptTokens, "generated": m.Generated} {
		if n > 0 {
			g.usage.Reported[name] = float64(n)
		}
	}
	if err := g.sound(m, context); err != nil {
		return g.conn.fail(g.conn.wrong(opGenerate, record.BadOutput, "%s violates the protocol: %v", g.conn.name, err))
	}
	g.contradictions(m, p)
	return nil
}

// sound returns an error for impossible counts.
func (g *generation) sound(m message, context int) error {
	ids, exact := g.hello.Caps.IDs, g.hello.Caps.Exact
	prompt, n := max(len(m.PromptIDs), m.PromptTokens), g.N
	if !exact {
		n = m.Generated
	}
	switch {
	case !slices.Contains([]string{"length", "stop"}, m.Finish):
		return fmt.Errorf(`"finish" is %.40q; use length or stop`, m.Finish)
	case g.N == 0:
		return errors.New("a generation ended without a token")
	case ids && len(m.PromptIDs) == 0:
		return errors.New(`"prompt_ids" is missing, although hello has "ids"`)
	case prompt == 0:
		return errors.New(`"prompt_tokens" is missing; it is required without "ids"`)
	case !exact && (m.Generated < g.N || m.Generated > g.request.MaxTokens):
		return fmt.Errorf(`"generated" is %d after %d pieces of a generation of %d tokens`, m.Generated, g.N,
			g.request.MaxTokens)
	case m.Finish == "length" && n < g.request.MaxTokens:
		return fmt.Errorf(`"finish" is length after %d of %d tokens`, n, g.request.MaxTokens)
	case m.cached() > prompt:
		return fmt.Errorf(`"cached_tokens" is %d, but the prompt has %d`, m.cached(), prompt)
	case context > 0 && prompt+n > context:
		return fmt.Errorf("%d prompt tokens and %d generated ones exceed the context of %d", prompt, n, context)
	}
	return nil
}

// contradictions warns about counts that differ from what was received. Both are recorded.
func (g *generation) contradictions(m message, p engine.Probe) {
	differ := func(what string, counted, own int) {
		if counted > 0 && own > 0 && counted != own {
			engine.Warn(p, "counts-differ", "%s counts %d %s, but sent %d", g.conn.name, own, what, counted)
		}
	}
	if g.hello.Caps.Exact {
		differ("tokens", g.N, m.Generated)
		g.usage.Generated = 0 // counted here
	}
	differ("prompt ids", len(m.PromptIDs), m.PromptTokens)
}

var _ engine.Scorer = (*session)(nil)

// Score requests scores. The engine sends a line for each token, as in a generation.
func (s *session) Score(ctx context.Context, f engine.Forced, each func(record.Score)) error {
	if err := f.Validate(); err != nil {
		return err
	}
	c, done, err := s.use()
	if err != nil {
		return err
	}
	defer done()
	if s.context > 0 {
		if err := f.Fit(s.context); err != nil {
			return err
		}
	}
	n := 0
	_, _, err = c.ask(ctx, opScore, fields{"prompt_ids": f.Prompt, "ids": f.IDs, "top": f.Top},
		func(_ *call, r received) error {
			if r.Event != evToken {
				return nil
			}
			if n == len(f.IDs) {
				return fmt.Errorf("score %d of %d tokens", n+1, n)
			}
			sc, err := r.score(n, f.IDs[n])
			if err == nil {
				n++
				each(sc)
			}
			return err
		})
	if err == nil && n < len(f.IDs) {
		err = c.fail(c.wrong(opScore, record.BadOutput, "%s violates the protocol: it scored %d of %d tokens", c.name, n,
			len(f.IDs)))
	}
	if err != nil {
		s.tell(ctx, c)
	}
	return ended(ctx, "scoring", err)
}

// score parses the score of a token.
func (m message) score(position, forced int) (record.Score, error) {
	if m.Token == nil || *m.Token != forced {
		return record.Score{}, fmt.Errorf(`score %d must have the forced "token" %d`, position, forced)
	}
	sc := record.Score{Position: position, Forced: forced, LogProb: math.NaN()}
	if m.LogProb != nil {
		sc.LogProb = *m.LogProb
	}
	for _, c := range m.Top {
		if c.Token == nil || c.LogProb == nil {
			return sc, fmt.Errorf(`score %d: an entry of "top" lacks "token" or "logprob"`, position)
		}
		sc.Top = append(sc.Top, record.Candidate{ID: *c.Token, LogProb: *c.LogProb})
	}
	return sc, sc.Sound()
}
