package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/wire"
)

// errNothing is a generation of which no text came.
var errNothing = errors.New("the generation ended without any text")

// generation is one stream. A piece of text is told when its chunk comes; a chunk without text (who speaks, why it ends, usage) is none.
type generation struct {
	client *client
	path   string
	body   map[string]any
	fresh  bool // the server was asked not to use its prompt cache
	alone  bool // the server closes the connection behind the stream
	most   int  // tokens asked for
	token  func(record.Token)
	usage  record.Usage

	pieces      int
	first, last time.Time
	text        strings.Builder
	told        *usage // the server's own count
	done        bool   // the stream ended as it should
}

// generation makes a request of what every server knows, and of what this one knows beyond it.
func (s *session) generation(r engine.Request, token func(record.Token)) *generation {
	s.mu.Lock()
	name := s.model.ID
	s.mu.Unlock()
	body := map[string]any{
		"model": name, "max_tokens": r.MaxTokens, "temperature": r.Temperature, "seed": 0,
		"stream": true, "stream_options": map[string]bool{"include_usage": true},
	}
	path := "/completions"
	if s.config.api() == Chat {
		path = "/chat/completions"
		body["messages"] = []map[string]string{{"role": "user", "content": r.Prompt}}
	} else {
		body["prompt"] = r.Prompt
	}
	fresh := s.server.kind == llamaServer
	if fresh {
		body["cache_prompt"] = false
	}
	if r.IgnoreEOS && s.server.kind.ignoresEOS() {
		body["ignore_eos"] = true
	}
	return &generation{client: s.client, path: path, body: body, fresh: fresh, alone: s.server.kind == llamaServer, most: r.MaxTokens, token: token}
}

func (g *generation) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the server stops when the connection goes
	g.usage.Sent = time.Now()
	defer g.measured()
	resp, sent, err := g.client.send(ctx, request{method: http.MethodPost, address: g.client.at.api + g.path, body: g.body, last: g.alone})
	g.usage.Sent = sent
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := g.read(ctx, resp.Body); err != nil {
		return err
	}
	if g.done {
		// What follows the mark is the end of the answer, at once: with it read, the connection can be used again.
		patience := time.AfterFunc(100*time.Millisecond, cancel)
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
		patience.Stop()
	}
	if g.pieces == 0 {
		return g.nothing()
	}
	return nil
}

// read takes the stream to its end. One that breaks off behind the reason why it ends is whole, but for what was to follow.
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
	for _, c := range e.Choices {
		if c.Index != 0 {
			continue // one was asked for
		}
		if text := c.piece(); text != "" {
			g.piece(text, at)
		}
		if c.Finish != "" {
			g.usage.Finish = c.Finish
		}
	}
	if e.Usage != nil {
		g.told = e.Usage // where every chunk has one, the last is the whole
		if g.usage.Reported == nil {
			g.usage.Reported = map[string]float64{}
		}
		maps.Copy(g.usage.Reported, e.Usage.reported())
	}
	own, err := timings(e.Timings)
	if err != nil {
		return &malformed{what: "a chunk of the stream", text: g.client.hide(snippet(e.Timings)), err: err}
	}
	if len(own) > 0 {
		if g.usage.Reported == nil {
			g.usage.Reported = map[string]float64{}
		}
		maps.Copy(g.usage.Reported, own)
	}
	return nil
}

func (g *generation) piece(text string, at time.Time) {
	if g.pieces == 0 {
		g.first = at
	}
	g.last = at
	g.text.WriteString(text)
	g.pieces++
	g.token(record.Token{Index: g.pieces - 1, ID: record.NoID, At: at})
}

// measured fills in what was seen, also of a generation that broke off.
func (g *generation) measured() {
	g.usage.Text = g.text.String()
	g.cached()
	if g.told != nil {
		g.counts()
	}
	if g.pieces == 0 {
		return
	}
	g.usage.Spans = append(g.usage.Spans, record.Span{Name: record.Prefill, Begin: g.usage.Sent, End: g.first,
		How: "at the client: request handed over, to the first chunk with text read"})
	if g.pieces > 1 {
		g.usage.Spans = append(g.usage.Spans, record.Span{Name: record.Decode, Begin: g.first, End: g.last,
			How: "at the client: first to last chunk with text read"})
	}
}

// counts takes the server's counts where they can be true; what it said is reported in any case.
func (g *generation) counts() {
	if n := g.told.Prompt; n != nil && *n > 0 {
		g.usage.PromptTokens = *n
	}
	if n := g.told.Completion; n != nil && g.contradiction() == "" {
		g.usage.Generated = *n
	}
}

// cached takes what the server says of its cache of prompts. Where it says nothing nothing is known, unless the cache was off.
func (g *generation) cached() {
	switch {
	case g.told != nil && g.told.cached() != nil && *g.told.cached() >= 0:
		g.usage.CachedTokens = *g.told.cached()
	case !g.fresh:
		g.usage.CachedTokens = record.CacheUntold
	}
}

// contradiction says where the server's count can't be true; empty where it can, or where there is none.
func (g *generation) contradiction() string {
	if g.told == nil || g.told.Completion == nil {
		if g.pieces > g.most {
			return fmt.Sprintf("%d tokens were asked for and %d pieces of text came", g.most, g.pieces)
		}
		return ""
	}
	switch n := *g.told.Completion; {
	case n < g.pieces:
		return fmt.Sprintf("the server counts %d tokens, and %d pieces of text came", n, g.pieces)
	case n > g.most:
		return fmt.Sprintf("the server counts %d tokens, and %d were asked for", n, g.most)
	}
	if n, ids := g.told.Prompt, len(g.usage.PromptIDs); n != nil && ids > 0 && *n != ids {
		return fmt.Sprintf("the server counts %d tokens of the prompt, and its tokenizer makes %d", *n, ids)
	}
	return ""
}

// warnings are what a reader of this generation's figures must know.
func (g *generation) warnings() []record.Warning {
	var out []record.Warning
	if what := g.contradiction(); what != "" && g.usage.Finish != "" {
		out = append(out, record.Warning{Code: "counts-differ", Text: what + ": both are recorded, and what was counted here is gone by"})
	}
	if g.usage.Finish != "" && (g.told == nil || g.told.Completion == nil) {
		out = append(out, record.Warning{Code: "no-usage", Text: fmt.Sprintf(
			"the server does not say how many tokens it generated: %d pieces of text were counted, and a piece may be several tokens", g.pieces)})
	}
	if g.usage.Finish != "" && !g.done && g.pieces > 0 {
		out = append(out, record.Warning{Code: "cut-stream", Text: "the stream broke off without its last mark, behind the reason why the text ends: what was to follow, such as usage, may be missing"})
	}
	if n := g.usage.CachedTokens; n > 0 {
		out = append(out, record.Warning{Code: "cached-prompt", Text: fmt.Sprintf(
			"%d of %d tokens of a prompt came from the server's cache: the time to the first token is not that of a whole prefill", n, g.usage.PromptTokens)})
	}
	if g.usage.Finish != "" && !g.fresh && (g.told == nil || g.told.cached() == nil) {
		out = append(out, record.Warning{Code: "cache-unknown", Text: "the server does not say whether tokens of the prompt came from a cache: the time to the first token may not be that of a whole prefill"})
	}
	return out
}

// nothing is the error of a generation without text.
func (g *generation) nothing() error {
	if g.told != nil && g.told.Completion != nil && *g.told.Completion > 0 {
		return engine.Fail(record.BadOutput, "%w: the server counts %d tokens, of which none could be timed", errNothing, *g.told.Completion)
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
