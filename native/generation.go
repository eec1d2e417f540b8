package native

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// generation is one streamed completion.
//
// llama-server sends one event a token, except that it holds an event back while the text so far ends inside a character; the
// next event then carries the last id alone, and the ids before it are lost to the stream. The running count in every event
// shows the gap. From the first gap on, tokens are kept, and at the end the same completion is asked for once more, whole, which
// gives every id: with the same seed and no cache it must agree wherever the stream told an id.
type generation struct {
	client *client
	body   completion
	token  func(record.Token)
	usage  record.Usage

	count    int            // tokens known so far
	kept     []record.Token // those that the caller has not seen; an id of -1 is not known
	heldBack int
	first    time.Time
	last     time.Time
	text     strings.Builder
}

const unknown = -1

func (g *generation) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the server stops when the connection goes
	g.usage.Sent = time.Now()
	events, body, err := g.client.stream(ctx, g.body)
	if err != nil {
		return err
	}
	defer body.Close()
	defer g.measured()
	for {
		e, at, err := events.next()
		if ctx.Err() != nil {
			return ctx.Err() // what was read ahead is not told any more
		}
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF // the last event was missing
		}
		if err != nil {
			return err
		}
		if e.Error != nil {
			return e.Error
		}
		if err := g.take(e, at); err != nil {
			return err
		}
		if e.Stop {
			return g.finish(ctx, e)
		}
	}
}

// take counts an event's tokens, and those before it that had none of their own.
func (g *generation) take(e event, at time.Time) error {
	g.text.WriteString(e.Content)
	if e.Predicted > 0 {
		missing := e.Predicted - len(e.Tokens) - g.count
		if missing < 0 || e.Predicted > g.body.NPredict {
			return engine.Fail(record.BadOutput, "llama-server counts %d tokens where its events held %d", e.Predicted, g.count+len(e.Tokens))
		}
		g.heldBack += missing
		for range missing {
			g.add(unknown, at)
		}
	}
	for _, id := range e.Tokens {
		g.add(id, at)
	}
	return nil
}

func (g *generation) add(id int, at time.Time) {
	t := record.Token{Index: g.count, ID: id, At: at}
	if g.count == 0 {
		g.first = at
	}
	g.last = at
	g.count++
	if g.heldBack > 0 {
		g.kept = append(g.kept, t)
		return
	}
	g.token(t)
}

// finish reads the last event, which has the server's own figures.
func (g *generation) finish(ctx context.Context, e event) error {
	var err error
	if g.usage.Reported, err = reported(e.Timings); err != nil {
		return engine.Fail(record.BadOutput, "%w", err)
	}
	g.usage.CachedTokens = int(g.usage.Reported["cache_n"])
	g.usage.Reported["tokens_predicted"] = float64(e.Predicted)
	g.usage.Reported["tokens_evaluated"] = float64(e.Evaluated)
	if g.body.Temperature > 0 {
		g.usage.Reported["seed"] = float64(g.body.Seed)
	}
	if g.count == 0 {
		return engine.Fail(record.BadOutput, "llama-server ended a generation without a token")
	}
	g.usage.Finish = "stop"
	if e.StopType == "limit" || e.StopType == "" && g.count == g.body.NPredict {
		g.usage.Finish = "length"
	}
	return g.resolve(ctx)
}

// resolve finds the ids that the stream lost and tells the caller of the tokens that were kept for it.
func (g *generation) resolve(ctx context.Context) error {
	if len(g.kept) == 0 {
		return nil
	}
	again := g.body
	again.NPredict = g.count
	ids, err := g.client.whole(ctx, again)
	if err != nil {
		return err
	}
	if len(ids) != g.count {
		return engine.Fail(record.BadOutput, "the same completion asked for twice has %d tokens, then %d", g.count, len(ids))
	}
	for i, t := range g.kept {
		if t.ID != unknown && t.ID != ids[t.Index] {
			return engine.Fail(record.BadOutput, "the same completion asked for twice parts at token %d: %d, then %d", t.Index, t.ID, ids[t.Index])
		}
		g.kept[i].ID = ids[t.Index]
	}
	for _, t := range g.kept {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		g.token(t)
	}
	return nil
}

// measured fills in what the client saw, also of a generation that broke off.
func (g *generation) measured() {
	g.usage.Text = g.text.String()
	if g.count == 0 {
		return
	}
	g.usage.Spans = append(g.usage.Spans, record.Span{Name: record.Prefill, Begin: g.usage.Sent, End: g.first,
		How: "at the client: request handed over, to the first token's event read; without tokenising"})
	if g.count > 1 {
		g.usage.Spans = append(g.usage.Spans, record.Span{Name: record.Decode, Begin: g.first, End: g.last,
			How: "at the client: first to last token's event read"})
	}
}
