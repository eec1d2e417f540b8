package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/wire"
)

// errNothing is a generation of which no text came.
var errNothing = errors.New("the generation ended without any text")

// generation is one stream. What a chunk with text brings is told when it comes: one piece of text, or as many tokens
// as the server counts by then, where it counts them with every chunk. A chunk without text (who speaks, why it ends,
// usage) is none.
type generation struct {
	client *client
	path   string
	body   *body
	fresh  bool                    // the prompt comes from no cache: the server was asked not to use it, or can't find it there
	most   int                     // tokens asked for
	refuse func(field, why string) // of a field that the server does not take, and that is left out from here on
	usage  record.Usage

	// Text has as many tokens as there are pieces, or those that were counted with them
	launch.Text
	pieces      int    // chunks with text
	guessed     bool   // a piece came without a count that can be true: each is told of as one from there on
	reads       int    // that brought pieces
	serverCount *usage // the server's own count
	done        bool   // the stream ended as it should
}

// generation makes a request.
func (s *session) generation(r engine.Request, token func(record.Token)) *generation {
	path := "/completions"
	if s.config.api() == Chat {
		path = "/chat/completions"
	}
	b := s.newBody(r)
	return &generation{client: s.client, path: path, body: b, fresh: s.server.kind == llamaServer || b.salted,
		most: r.MaxTokens, Text: launch.Text{Token: token}, refuse: s.refuse}
}

func (g *generation) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the server stops when the connection goes
	g.usage.Sent = time.Now()
	defer g.measured()
	resp, err := g.send(ctx)
	if err != nil {
		return err
	}
	// What follows the mark is the end of the answer, for which nobody waits: the connection is not used again.
	defer resp.Body.Close()
	if err := g.read(ctx, resp.Body); err != nil {
		return err
	}
	if g.pieces == 0 {
		return g.nothing()
	}
	return nil
}

// send asks for the stream; again where the server refuses a field that can be left out.
func (g *generation) send(ctx context.Context) (*http.Response, error) {
	for {
		resp, sent, err := g.client.send(
			ctx, request{method: http.MethodPost, address: g.client.at.api + g.path, body: g.body.fields, alone: true})
		g.usage.Sent = sent
		var r *refusal
		if err == nil || !errors.As(err, &r) {
			return resp, err
		}
		field := g.body.refuses(r)
		if field == "" {
			return nil, err
		}
		g.body.drop(field)
		g.fresh = g.fresh && field != "cache_salt"
		g.refuse(field, r.Error())
	}
}

// read takes the stream to its end. One that breaks off behind the reason why it ends is whole, but for what was to
// follow.
func (g *generation) read(ctx context.Context, body io.Reader) error {
	events := wire.NewEvents(body)
	for {
		sent, err := events.Next()
		switch {
		case ctx.Err() != nil:
			return ctx.Err() // what was read ahead is not told any more
		case err != nil && g.usage.Finish != "":
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case sent.Done():
			g.done = true
			return nil
		}
		data := sent.Data
		if sent.Field == "error" {
			return g.client.complaint(data)
		}
		e, err := g.client.parseChunk(data)
		if err != nil {
			return err
		}
		if err := g.take(e, sent.At); err != nil {
			return err
		}
	}
}

// take counts what a chunk brings.
func (g *generation) take(e chunk, at time.Time) error {
	own, err := wire.Figures(e.Timings)
	if err != nil {
		return &malformed{what: "a chunk of the stream", text: g.client.snippet(e.Timings),
			err: fmt.Errorf("the server's timings: %w", err)}
	}
	if e.Usage != nil {
		g.serverCount = e.Usage // where every chunk has one, the last is the whole
		g.report(e.Usage.reported())
	}
	g.report(own)
	for _, c := range e.Choices {
		if c.Index != 0 {
			continue // one was asked for
		}
		text := c.piece()
		switch so := soFar(e, own); {
		case text != "":
			g.piece(text, at, so)
		case c.Finish != "" && g.pieces > 0 && !g.guessed && so > g.N && so <= g.most:
			g.tell(so, at) // the token that ends the text, or one whose text is only half a character
		}
		if c.Finish != "" {
			g.usage.Finish = c.Finish
		}
	}
	return nil
}

// soFar is how many tokens there were by the server's count in a chunk; 0: it has none.
func soFar(e chunk, own map[string]float64) int {
	if e.Usage != nil && e.Usage.Completion != nil {
		return *e.Usage.Completion
	}
	if n := own["predicted_n"]; n >= 1 && n < 1<<31 {
		return int(n)
	}
	return 0
}

func (g *generation) report(figures map[string]float64) {
	if g.usage.Reported == nil && len(figures) > 0 {
		g.usage.Reported = map[string]float64{}
	}
	maps.Copy(g.usage.Reported, figures)
}

// piece takes a chunk's text. Counts that do not rise with every piece, or beyond what was asked for, are not those of
// the pieces.
func (g *generation) piece(text string, at time.Time, soFar int) {
	if g.pieces == 0 || !at.Equal(g.Last) {
		g.reads++
	}
	g.WriteString(text)
	g.pieces++
	if soFar <= g.N || soFar > g.most {
		g.guessed = true
	}
	if g.guessed {
		soFar = g.N + 1
	}
	g.tell(soFar, at)
}

// tell tells of the tokens up to a count: those of one chunk have one time.
func (g *generation) tell(soFar int, at time.Time) {
	g.Last = at
	for g.N < soFar {
		g.Tell(record.NoID, at)
	}
}

// measured fills in what was seen, also of a generation that broke off.
func (g *generation) measured() {
	g.usage.Text = g.String()
	g.counts()
	if g.body.seed != 0 {
		g.report(map[string]float64{"seed": float64(g.body.seed)})
	}
	decode := ""
	if g.N > 1 && !g.burst() {
		decode = "at the client: first to last chunk with text come"
	}
	g.usage.Spans = g.Spans(g.usage.Sent,
		"at the client: request handed to its connection, to the first chunk with text come", decode)
}

// burst tells that the pieces came in far fewer reads than they are: something on their way held them up, and their
// times are not those at which they were made. There is no decode span then.
func (g *generation) burst() bool { return g.pieces > 1 && 2*g.reads <= g.pieces }

// counts takes the server's counts where they can be true; what it said is reported in any case.
func (g *generation) counts() {
	if !g.fresh {
		g.usage.CachedTokens = record.CacheUnknown
	}
	if g.serverCount == nil {
		return
	}
	if n := g.serverCount.Prompt; n != nil && *n > 0 {
		g.usage.PromptTokens = *n
	}
	if n := g.serverCount.cached(); n != nil && *n >= 0 {
		g.usage.CachedTokens = *n
	}
	if n := g.serverCount.Completion; n != nil && g.contradiction() == "" {
		g.usage.Generated = *n
	}
}

// contradiction says where the server's count can't be true; empty where it can, or where there is none.
func (g *generation) contradiction() string {
	if g.serverCount == nil || g.serverCount.Completion == nil {
		if g.pieces > g.most {
			return fmt.Sprintf("%d tokens were asked for and %d pieces of text came", g.most, g.pieces)
		}
		return ""
	}
	switch n := *g.serverCount.Completion; {
	case n < g.N:
		return fmt.Sprintf("the server counts %d tokens, and %d pieces of text came", n, g.pieces)
	case n > g.most:
		return fmt.Sprintf("the server counts %d tokens, and %d were asked for", n, g.most)
	}
	if n, ids := g.serverCount.Prompt, len(g.usage.PromptIDs); n != nil && ids > 0 && *n != ids {
		return fmt.Sprintf("the server counts %d tokens of the prompt, and its tokenizer makes %d", *n, ids)
	}
	return ""
}

// warnings are what a reader of this generation's figures must know.
func (g *generation) warnings() []record.Warning {
	if g.pieces == 0 || g.usage.Finish == "" && !g.done {
		return nil // it failed
	}
	var out []record.Warning
	warn := func(code, format string, args ...any) {
		out = append(out, record.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	counted := g.serverCount != nil && g.serverCount.Completion != nil
	if what := g.contradiction(); what != "" {
		warn("counts-differ", "%s: both are recorded, and what was counted here is gone by", what)
	} else if counted && *g.serverCount.Completion > g.N {
		warn("several-per-piece", "%d tokens came in %d pieces of text, and the server does not say how many in each: "+
			"how many the first one held, and so decode, is not known exactly", *g.serverCount.Completion, g.pieces)
	}
	if !counted {
		warn("no-usage", "the server does not say how many tokens it generated: %d pieces of text were counted, and a piece may be several tokens", g.pieces)
	}
	if g.burst() {
		warn("burst", "%d pieces of text came in %d reads: they were held up on their way, by a proxy or by the network; decode is not known, "+
			"and the time to the first token may be longer than it was there", g.pieces, g.reads)
	}
	if g.usage.Finish == "" {
		warn("no-reason", "the server does not say why the text ends (finish_reason): whether it is whole is not known")
	}
	if !g.done {
		warn("cut-stream", "the stream broke off without its last mark, behind the reason why the text ends: what was to follow, such as usage, may be missing")
	}
	if n := g.usage.CachedTokens; n > 0 {
		warn("cached-prompt", "%d of %d tokens of a prompt came from the server's cache: the time to the first token is not that of a whole prefill", n, g.usage.PromptTokens)
	}
	if g.usage.CachedTokens == record.CacheUnknown {
		warn("cache-unknown", "the server does not say whether tokens of the prompt came from a cache: the time to the first token may not be that of a whole prefill")
	}
	return out
}

// nothing is the error of a generation without text.
func (g *generation) nothing() error {
	if g.serverCount != nil && g.serverCount.Completion != nil && *g.serverCount.Completion > 0 {
		return engine.Fail(record.BadOutput, "%w: the server counts %d tokens, of which none could be timed",
			errNothing, *g.serverCount.Completion)
	}
	return engine.Fail(record.BadOutput, "%w (finish reason %q)", errNothing, g.usage.Finish)
}

// awaited says what had not come yet.
func (g *generation) awaited() string {
	if g.pieces == 0 {
		return "the first piece of text"
	}
	return fmt.Sprintf("what follows the first %d pieces of text", g.pieces)
}
