package protocol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/launch"
)

// Generate asks for the text that continues a prompt.
func (s *session) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	free, err := s.turn.Take()
	if err != nil {
		return record.Usage{}, err
	}
	defer free()
	c, err := s.current()
	if err != nil {
		return record.Usage{}, err
	}
	if err := r.Check(); err != nil {
		return record.Usage{}, err
	}
	g := &generation{conn: c, hello: s.hello, request: r, Text: launch.Text{Token: token}}
	got, k, err := c.ask(ctx, opGenerate, r.MaxTokens, func(id int) any {
		return generateRequest{ID: id, Op: opGenerate, Prompt: r.Prompt, MaxTokens: r.MaxTokens,
			Temperature: r.Temperature,
			IgnoreEOS:   r.IgnoreEOS}
	}, g.take)
	if k != nil {
		g.usage.Sent = k.sent
	}
	g.measured()
	if err == nil {
		err = g.finish(got.message, s.context, s.probe)
		s.cutShort("reported", g.leftOut)
	}
	if err == nil && g.atOnce() {
		s.heldUp(g)
	}
	if err != nil {
		s.tell(ctx, c)
	}
	if err != nil && ctx.Err() != nil {
		g.usage.Finish = "cancelled"
	}
	return g.usage, ended(ctx, "generating", err)
}

// generation is what comes of a request.
type generation struct {
	conn    *conn
	hello   message
	request engine.Request
	usage   record.Usage
	launch.Text

	leftOut      int       // names of its own figures
	read         time.Time // when the last token was
	reads        int       // that tokens came with
	withTheFirst int       // tokens of the first of them
}

// take counts a token, or a piece of text.
func (g *generation) take(k *call, r received) error {
	if r.Event != evToken {
		return nil
	}
	id := record.NoID
	switch ids := g.hello.Caps.IDs; {
	case ids && r.Token == nil:
		return fmt.Errorf(`token %d has no "token", and hello said that ids are told`, g.N)
	case !ids && r.Token != nil:
		return fmt.Errorf(`token %d has the id %d in "token", and hello said that none are told`, g.N, *r.Token)
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

// stamp is when a token was there: the engine's own time where it said that it has one.
func (g *generation) stamp(k *call, r received) (time.Time, error) {
	switch {
	case g.hello.Clock == "" && r.NS == nil:
		return r.at, nil
	case g.hello.Clock == "":
		return r.at, fmt.Errorf(`token %d has "t_ns", and hello named no "clock"`, g.N)
	case r.NS == nil:
		return r.at, fmt.Errorf(`token %d has no "t_ns", and hello named a "clock"`, g.N)
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

// slowly is how long a generation takes in which it was not merely us who were held up, for a moment, while tokens
// came.
const slowly = 50 * time.Millisecond

// atOnce tells whether tokens lay in a buffer of the engine's, which then was written: their times are not those at
// which they were there. Decode begins when the first of them is read, by when more are there: where they are a tenth
// of all, decode is too fast by as much.
func (g *generation) atOnce() bool {
	return g.hello.Clock == "" && g.N > 1 && g.Last.Sub(g.usage.Sent) >= slowly && g.reads*4 <= g.N &&
		g.withTheFirst*10 > g.N
}

// heldUp leaves the decode span out, by which there is no speed either, and says why, once.
func (s *session) heldUp(g *generation) {
	g.usage.Spans = slices.DeleteFunc(g.usage.Spans, func(s record.Span) bool { return s.Name == record.Decode })
	if s.said["tokens-at-once"] {
		return
	}
	s.said["tokens-at-once"] = true
	engine.Warn(s.probe, "tokens-at-once", "%s handed %d tokens over in %d write(s), long after the first one was there: "+
		"no decode speed can be told, and its time to the first token is that to the first write; "+
		"let it flush its output after every line, or say t_ns", s.engine.Name(), g.N, g.reads)
}

// measured fills in what was seen, also of a generation that broke off.
func (g *generation) measured() {
	g.usage.Text = g.String()
	to, decode := "token's line read", ""
	if g.hello.Clock != "" {
		to = "token, by the engine's reading of the clock that both have"
	}
	if g.N > 1 || !g.hello.Caps.Exact {
		decode = "first to last " + to
	}
	g.usage.Spans = g.Spans(g.usage.Sent, "request written, to the first "+to, decode)
}

// finish reads the last line, which has the engine's own counts.
func (g *generation) finish(m message, context int, p engine.Probe) error {
	g.usage.Finish, g.usage.PromptIDs, g.usage.PromptTokens = m.Finish, m.PromptIDs, m.PromptTokens
	g.usage.CachedTokens, g.usage.Generated = m.cached(), m.Generated
	if g.hello.Caps.PromptCache && m.CachedTokens == nil {
		g.usage.CachedTokens = record.CacheUnknown
	}
	g.usage.Reported, g.leftOut = numbers(m.Reported)
	if g.usage.Reported == nil {
		g.usage.Reported = map[string]float64{}
	}
	for name, n := range map[string]int{"prompt_tokens": m.PromptTokens, "generated": m.Generated} {
		if n > 0 {
			g.usage.Reported[name] = float64(n)
		}
	}
	err := g.sound(m, context)
	if err != nil {
		err = g.conn.wrong(opGenerate, record.BadOutput, g.conn.name+" breaks the protocol: "+err.Error())
		g.conn.fail(err)
		return err
	}
	g.contradictions(m, p)
	return nil
}

// sound says what can't be.
func (g *generation) sound(m message, context int) error {
	ids, exact := g.hello.Caps.IDs, g.hello.Caps.Exact
	prompt, n := max(len(m.PromptIDs), m.PromptTokens), g.N
	if !exact {
		n = m.Generated
	}
	switch {
	case !slices.Contains([]string{"length", "stop"}, m.Finish):
		return fmt.Errorf(`"finish" is %.40q: length or stop is right`, m.Finish)
	case g.N == 0:
		return errors.New("a generation ended without a token")
	case ids && len(m.PromptIDs) == 0:
		return errors.New(`"prompt_ids" is missing, and hello said that ids are told`)
	case prompt == 0:
		return errors.New(`"prompt_tokens" is missing: without ids their number is needed`)
	case !exact && (m.Generated < g.N || m.Generated > g.request.MaxTokens):
		return fmt.Errorf(`"generated" is %d, after %d pieces of a generation of %d tokens`, m.Generated, g.N,
			g.request.MaxTokens)
	case m.Finish == "length" && n < g.request.MaxTokens:
		return fmt.Errorf(`"finish" is length after %d tokens of %d`, n, g.request.MaxTokens)
	case m.cached() > prompt:
		return fmt.Errorf(`"cached_tokens" is %d, of a prompt of %d`, m.cached(), prompt)
	case context > 0 && prompt+n > context:
		return fmt.Errorf("it went beyond the context of %d tokens: %d of the prompt and %d more", context, prompt, n)
	}
	return nil
}

// contradictions tells of counts that are not what came. Both are in the record.
func (g *generation) contradictions(m message, p engine.Probe) {
	for _, c := range []struct {
		what         string
		counted, own int
	}{{"tokens", g.N, m.Generated}, {"prompt ids", len(m.PromptIDs), m.PromptTokens}} {
		exact := c.what != "tokens" || g.hello.Caps.Exact
		if exact && c.counted > 0 && c.own > 0 && c.counted != c.own {
			engine.Warn(p, "counts-differ", "%s says that there were %d %s, and %d came", g.conn.name, c.own, c.what,
				c.counted)
		}
	}
	if g.hello.Caps.Exact {
		g.usage.Generated = 0 // counted, not told
	}
}
