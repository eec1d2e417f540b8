package protocol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
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
	if r.MaxTokens < 1 {
		return record.Usage{}, engine.Fail(record.SetUp, "a generation of %d tokens was asked for", r.MaxTokens)
	}
	g := &generation{conn: c, hello: s.hello, request: r, token: token}
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
	token   func(record.Token)
	usage   record.Usage

	n           int
	first, last time.Time
	text        strings.Builder
	leftOut     int // names of its own figures

	read         int // which read the last token came with
	reads        int // that tokens came with
	withTheFirst int // tokens of the first of them
}

// take counts a token, or a piece of text.
func (g *generation) take(k *call, r received) error {
	if r.Event != evToken {
		return nil
	}
	t := record.Token{Index: g.n, ID: record.NoID, At: r.at}
	switch ids := g.hello.Caps.IDs; {
	case ids && r.Token == nil:
		return fmt.Errorf(`token %d has no "token", and hello said that ids are told`, g.n)
	case !ids && r.Token != nil:
		return fmt.Errorf(`token %d has the id %d in "token", and hello said that none are told`, g.n, *r.Token)
	case ids:
		t.ID = *r.Token
	}
	if err := g.stamp(&t, k, r); err != nil {
		return err
	}
	if g.n == 0 {
		g.first = t.At
	}
	if r.read != g.read {
		g.read = r.read
		g.reads++
	}
	if g.reads == 1 {
		g.withTheFirst++
	}
	g.last = t.At
	g.n++
	g.text.WriteString(r.Text)
	g.token(t)
	return nil
}

// stamp takes the engine's own time where it said that it has one.
func (g *generation) stamp(t *record.Token, k *call, r received) error {
	switch {
	case g.hello.Clock == "" && r.NS == nil:
		return nil
	case g.hello.Clock == "":
		return fmt.Errorf(`token %d has "t_ns", and hello named no "clock"`, g.n)
	case r.NS == nil:
		return fmt.Errorf(`token %d has no "t_ns", and hello named a "clock"`, g.n)
	}
	after := k.sent
	if g.n > 0 {
		after = g.last
	}
	var err error
	if t.At, err = g.conn.clock.time(*r.NS, after, r.at); err != nil {
		return fmt.Errorf("token %d: %w", g.n, err)
	}
	return nil
}

// slowly is how long a generation takes in which it was not merely us who were held up, for a moment, while tokens
// came.
const slowly = 50 * time.Millisecond

// atOnce tells whether tokens lay in a buffer of the engine's, which then was written: their times are not those at
// which they were there. Decode begins when the first of them is read, by when more are there: where they are a tenth
// of all, decode is too fast by as much.
func (g *generation) atOnce() bool {
	return g.hello.Clock == "" && g.n > 1 && g.last.Sub(g.usage.Sent) >= slowly && g.reads*4 <= g.n &&
		g.withTheFirst*10 > g.n
}

// heldUp leaves the decode span out, by which there is no speed either, and says why, once.
func (s *session) heldUp(g *generation) {
	g.usage.Spans = slices.DeleteFunc(g.usage.Spans, func(s record.Span) bool { return s.Name == record.Decode })
	if s.said["tokens-at-once"] {
		return
	}
	s.said["tokens-at-once"] = true
	s.probe.Warn(record.Warning{Code: "tokens-at-once",
		Text: fmt.Sprintf("%s handed %d tokens over in %d write(s), long after the first one was there: "+
			"no decode speed can be told, and its time to the first token is that to the first write; let it flush its output after every line, or say t_ns",
			s.engine.Name(), g.n, g.reads)})
}

// measured fills in what was seen, also of a generation that broke off.
func (g *generation) measured() {
	g.usage.Text = g.text.String()
	if g.n == 0 {
		return
	}
	to := "token's line read"
	if g.hello.Clock != "" {
		to = "token, by the engine's reading of the clock that both have"
	}
	g.usage.Spans = append(g.usage.Spans, record.Span{Name: record.Prefill, Begin: g.usage.Sent, End: g.first,
		How: "request written, to the first " + to})
	if g.n > 1 || !g.hello.Caps.Exact {
		g.usage.Spans = append(g.usage.Spans,
			record.Span{Name: record.Decode, Begin: g.first, End: g.last, How: "first to last " + to})
	}
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
	prompt, n := max(len(m.PromptIDs), m.PromptTokens), g.n
	if !exact {
		n = m.Generated
	}
	switch {
	case !slices.Contains([]string{"length", "stop"}, m.Finish):
		return fmt.Errorf(`"finish" is %.40q: length or stop is right`, m.Finish)
	case g.n == 0:
		return errors.New("a generation ended without a token")
	case ids && len(m.PromptIDs) == 0:
		return errors.New(`"prompt_ids" is missing, and hello said that ids are told`)
	case prompt == 0:
		return errors.New(`"prompt_tokens" is missing: without ids their number is needed`)
	case !exact && (m.Generated < g.n || m.Generated > g.request.MaxTokens):
		return fmt.Errorf(`"generated" is %d, after %d pieces of a generation of %d tokens`, m.Generated, g.n,
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
	}{{"tokens", g.n, m.Generated}, {"prompt ids", len(m.PromptIDs), m.PromptTokens}} {
		exact := c.what != "tokens" || g.hello.Caps.Exact
		if exact && c.counted > 0 && c.own > 0 && c.counted != c.own {
			p.Warn(record.Warning{Code: "counts-differ", Text: fmt.Sprintf("%s says that there were %d %s, and %d came",
				g.conn.name, c.own, c.what, c.counted)})
		}
	}
	if g.hello.Caps.Exact {
		g.usage.Generated = 0 // counted, not told
	}
}
