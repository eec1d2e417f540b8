package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/wire"
)

// errNothing is a generation without text.
var errNothing = errors.New("the generation ended without any text")

// generation is one stream. Each chunk is reported when it is read: as the tokens whose ids it has, as those that the
// server has counted since the last one, if it counts with each chunk, or as one piece of text. Chunks with none of
// these (role, finish reason, usage) are not reported.
type generation struct {
	s     *session
	body  *body
	most  int // requested tokens
	usage record.Usage

	// Text counts pieces, or the tokens counted with them
	engine.Text
	pieces      int   // chunks with text
	guessed     bool  // a piece had no plausible count, so each one counts as a token from then on
	reads       int   // reads that returned pieces
	withFirst   int   // tokens that came with the first read
	serverCount usage // the server's own count
	done        bool  // the stream ended properly
}

// generation makes a request.
func (s *session) generation(r engine.Request, token func(record.Token)) *generation {
	return &generation{s: s, body: s.newBody(r), most: r.MaxTokens, Text: engine.Text{Token: token}}
}

func (g *generation) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the server stops when the connection closes
	defer g.measured()
	resp, err := g.send(ctx)
	if err != nil {
		return err
	}
	// Nothing after the end mark matters: the connection is not reused.
	defer resp.Body.Close()
	if err := g.read(ctx, resp.Body); err != nil || g.pieces > 0 {
		return err
	}
	if n := g.serverCount.Completion; n != nil && *n > 0 {
		return engine.Fail(record.BadOutput, "%w: the server counts %d tokens, which cannot be timed", errNothing, *n)
	}
	return engine.Fail(record.BadOutput, "%w (finish reason %q)", errNothing, g.usage.Finish)
}

// send starts the stream, omitting optional fields that the server refuses.
func (g *generation) send(ctx context.Context) (*http.Response, error) {
	g.usage.Sent = time.Now()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		g.usage.Sent = time.Now() // connecting excluded
	}})
	path := g.s.client.at.api + "/completions"
	if g.s.config.api() == Chat {
		path = g.s.client.at.api + "/chat/completions"
	}
	for {
		resp, err := g.s.client.Send(ctx, http.MethodPost, path, g.body.fields)
		r := wire.RefusalOf(err)
		if r == nil {
			return resp, err
		}
		field := g.body.refuses(r)
		if field == "" {
			return nil, err
		}
		g.body.drop(field)
		if _, known := g.s.refused.LoadOrStore(field, true); !known {
			engine.Warn(g.s.probe, "field-refused",
				"the server at %s refuses the field %s; it is omitted, so the server's default applies (%s)",
				g.s.client.at.host, field, g.s.client.Hide(r.Error()))
		}
	}
}

// read reads the stream to its end. If it breaks after the finish reason, only figures after that are missing.
func (g *generation) read(ctx context.Context, body io.Reader) error {
	var broken error // taking it, not reading it
	err := wire.Each(ctx, wire.NewLines(body).NextEvent, func(sent wire.Event) (last bool, err error) {
		if sent.Done() {
			g.done = true
			return true, nil
		}
		var e chunk
		if err := json.Unmarshal(sent.Data, &e); err != nil {
			broken = g.s.client.malformed(sent.Data, err)
		} else if len(e.Error) > 0 && string(e.Error) != "null" || e.Object == "error" {
			broken = g.s.client.Complaint(sent.Data)
		} else {
			broken = g.take(e, sent.At)
		}
		return false, broken
	})
	if broken == nil && ctx.Err() == nil && g.usage.Finish != "" {
		return nil
	}
	return err
}

// take processes a chunk.
func (g *generation) take(e chunk, at time.Time) error {
	own, err := wire.Figures(e.Timings)
	if err != nil {
		return g.s.client.malformed(e.Timings, fmt.Errorf("the server's timings: %w", err))
	}
	if e.Usage != nil {
		g.serverCount = *e.Usage // if each chunk has one, the last is the total
		g.report(e.Usage.reported())
	}
	g.report(own)
	for _, c := range e.Choices {
		if len(e.Choices) > 1 && c.Index != 0 {
			continue // only one was requested; the index of a single one may count tokens
		}
		text := c.Text + c.Delta.Thinks + c.Delta.Reasoning + c.Delta.Content // empty: only a role or a finish reason
		if len(c.PromptIDs) > 0 {
			g.usage.PromptIDs = c.PromptIDs
		}
		switch so := soFar(e, own); {
		case len(c.IDs) > 0:
			g.tokens(c.IDs, text, at)
		case text != "":
			g.piece(text, at, so)
		case c.Finish != "" && g.pieces > 0 && !g.guessed && so > g.N && so <= g.most:
			g.tell(so, at) // the end token, or one with only part of a character
		}
		if c.Finish != "" {
			g.usage.Finish = c.Finish
		}
	}
	return nil
}

// soFar returns the number of tokens according to a chunk; 0: unknown.
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

// tokens reports those of a chunk, which may end inside a character and so have no text yet.
func (g *generation) tokens(ids []int, text string, at time.Time) {
	g.came(at)
	g.WriteString(text)
	for _, id := range ids {
		g.Tell(id, at)
	}
	if g.reads == 1 {
		g.withFirst = g.N
	}
}

// came counts a chunk, and the read that brought it.
func (g *generation) came(at time.Time) {
	if g.pieces == 0 || !at.Equal(g.Last) {
		g.reads++
	}
	g.pieces++
}

// piece reports a chunk's text. A count that does not rise with each piece, or exceeds the request, is not used.
func (g *generation) piece(text string, at time.Time, soFar int) {
	g.came(at)
	g.WriteString(text)
	if soFar <= g.N || soFar > g.most {
		g.guessed = true
	}
	if g.guessed {
		soFar = g.N + 1
	}
	g.tell(soFar, at)
	if g.reads == 1 {
		g.withFirst = g.N
	}
}

// tell reports tokens up to a count; those of one chunk have the same time.
func (g *generation) tell(soFar int, at time.Time) {
	g.Last = at
	for g.N < soFar {
		g.Tell(record.NoID, at)
	}
}

// measured records what the client saw, also of a generation that failed.
func (g *generation) measured() {
	g.usage.Text = g.String()
	g.counts()
	if g.body.seed != 0 {
		g.report(map[string]float64{"seed": float64(g.body.seed)})
	}
	timed := g.N
	if g.burst() {
		timed = 0
	}
	g.usage.Spans = g.Spans(g.usage.Sent, timed, "client: request sent to first chunk with text read",
		"client: first chunk with text read to last one")
}

// burst reports whether pieces were read in far fewer reads, so something delayed them and token times are unknown.
// Then there is no decode span. If the tokens of each piece are known, so is how many came later than the first read:
// the rate is right unless there are few reads and much of the text came with the first.
func (g *generation) burst() bool {
	if g.guessed {
		return g.pieces > 1 && 2*g.reads <= g.pieces
	}
	return g.pieces > 1 && (g.reads == 1 || 4*g.reads <= g.N && 10*g.withFirst > g.N)
}

// counts uses the server's counts if they are plausible; they are recorded in any case.
func (g *generation) counts() {
	if _, salted := g.body.fields[salt]; !salted && g.s.server.kind != llamaServer { // which does not use its cache
		g.usage.CachedTokens = record.CacheUnknown
	}
	if n := g.serverCount.Prompt; n != nil && *n > 0 {
		g.usage.PromptTokens = *n
	}
	if n := g.serverCount.Details.Cached; n != nil && *n >= 0 {
		g.usage.CachedTokens = *n
	}
	if n := g.serverCount.Completion; n != nil && g.contradiction() == "" {
		g.usage.Generated = *n
	}
}

// contradiction says why the server's count is wrong; empty if it is plausible or missing.
func (g *generation) contradiction() string {
	switch n := g.serverCount.Completion; {
	case n == nil && g.pieces > g.most:
		return fmt.Sprintf("%d tokens requested, but %d pieces of text received", g.most, g.pieces)
	case n == nil:
		return ""
	case *n < g.N:
		return fmt.Sprintf("the server counts %d tokens, but sent %d pieces of text", *n, g.pieces)
	case *n > g.most:
		return fmt.Sprintf("the server counts %d tokens, but %d were requested", *n, g.most)
	}
	if n, ids := g.serverCount.Prompt, len(g.usage.PromptIDs); n != nil && ids > 0 && *n != ids {
		return fmt.Sprintf("the server counts %d prompt tokens, but its tokeniser returns %d", *n, ids)
	}
	return ""
}

// warn reports what affects the figures of this generation.
func (g *generation) warn(to engine.Teller) {
	if g.pieces == 0 || g.usage.Finish == "" && !g.done {
		return // it failed
	}
	counted := g.serverCount.Completion
	if what := g.contradiction(); what != "" {
		engine.Warn(to, "counts-differ", "%s; both are recorded, and our own count is used", what)
	} else if counted != nil && *counted > g.N {
		engine.Warn(to, "several-per-piece", "%d tokens arrived in %d pieces of text, and the server does not say how many in each: "+
			"the tokens in the first piece, and so decode, are only estimated", *counted, g.pieces)
	}
	if counted == nil {
		engine.Warn(to, "no-usage", "the server does not report the number of tokens; %d pieces of text were counted instead, each of which may be several tokens", g.pieces)
	}
	if g.burst() {
		engine.Warn(to, "burst", "%d pieces of text arrived in %d reads, delayed by a proxy or the network: decode is unknown, "+
			"and the time to first token may include the delay", g.pieces, g.reads)
	}
	if g.s.tellsIDs() && len(g.usage.PromptIDs) == 0 {
		engine.Warn(to, "no-token-ids", "the server was asked for token ids and returned none")
	}
	if g.usage.Finish == "" {
		engine.Warn(to, "no-reason", "the server does not say why the text ended (finish_reason), so it may be incomplete")
	}
	if !g.done {
		engine.Warn(to, "cut-stream", "the stream broke after the finish reason; figures after it, such as usage, may be missing")
	}
	if n := g.usage.CachedTokens; n > 0 {
		engine.Warn(to, "cached-prompt", "%d of %d prompt tokens came from the server's cache: the time to first token excludes their prefill", n, g.usage.PromptTokens)
	}
	if g.usage.CachedTokens == record.CacheUnknown {
		engine.Warn(to, "cache-unknown", "the server does not say whether prompt tokens came from a cache: the time to first token may exclude some of the prefill")
	}
}

// chunk is an event of a stream, in either API.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Timings json.RawMessage `json:"timings"` // llama-server's own
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"` // "error" in servers without an error field
}

type choice struct {
	Index int    `json:"index"`
	Text  string `json:"text"` // of completions
	// vLLM's: ids of this chunk's tokens, and with the first chunk those of the prompt.
	IDs       []int `json:"token_ids"`
	PromptIDs []int `json:"prompt_token_ids"`
	Delta     struct {
		Content   string `json:"content"`
		Thinks    string `json:"reasoning_content"` // generated before the answer
		Reasoning string `json:"reasoning"`         // the same, by another name
	} `json:"delta"` // of chats
	Finish string `json:"finish_reason"`
}

// usage is the server's count.
type usage struct {
	Prompt     *int `json:"prompt_tokens"`
	Completion *int `json:"completion_tokens"`
	Total      *int `json:"total_tokens"`
	Details    struct {
		Cached *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// reported returns the counts under the server's own names.
func (u usage) reported() map[string]float64 {
	out := map[string]float64{}
	for name, n := range map[string]*int{
		"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Total,
		"cached_tokens": u.Details.Cached,
	} {
		if n != nil {
			out[name] = float64(*n)
		}
	}
	return out
}

// malformed is the error for a chunk that is not JSON or has the wrong fields.
func (c *client) malformed(data []byte, err error) error {
	return engine.Fail(record.BadOutput, "a chunk of the stream is invalid: %w in %q", err, c.Snippet(data))
}
