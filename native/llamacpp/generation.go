package llamacpp

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/launch"
)

// generation is the text that continues a prompt: one streamed completion, or several.
//
// llama-server ends a completion with the token that ends the text, or never chooses that token (ignore_eos). To go on
// behind it, as other engines do and as the same ids everywhere demand, what came so far is sent as the next
// completion's prompt. That costs a prefill, which the record is told of.
//
// llama-server sends one event a token, except that it holds an event back while the text so far ends inside a
// character; the next event then carries the last id alone, and the ids before it are lost to the stream. The running
// count in every event shows the gap. From the first gap on, tokens are kept, and at the end the same completion is
// asked for once more, whole, which gives every id: with the same seed and no cache it must agree wherever the stream
// told an id.
type generation struct {
	client *client
	body   completion
	token  func(record.Token)
	launch.Text
	usage  record.Usage
	beyond bool // go on behind the end of the text

	ids      []int          // tokens known so far; unknown where the stream lost one
	base     int            // how many of them belong to earlier completions
	resumed  int            // how often the text had ended
	kept     []record.Token // those of this completion that the caller has not seen
	heldBack int
	cached   int // tokens that the server holds in the slot's KV cache afterwards
	slot     int
	// others go on beside it, or a part of its prompt was computed for another: sums may be taken in another order the
	// next time
	batched bool
	parted  bool // the same completion asked for twice is not the same
}

const unknown = record.NoID

func (g *generation) run(ctx context.Context) error {
	g.usage.Sent, g.Token = time.Now(), g.tell
	defer g.measured()
	for {
		err := g.complete(ctx)
		if err != nil || !g.beyond || g.usage.Finish == "length" {
			return err
		}
		g.resumed++
		g.body.Prompt = append(slices.Clone(g.usage.PromptIDs), g.ids...)
		g.body.NPredict -= len(g.ids) - g.base
		g.base = len(g.ids)
	}
}

// complete runs one completion.
func (g *generation) complete(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the server stops when the connection goes
	events, body, err := g.client.stream(ctx, g.body)
	if err != nil {
		return err
	}
	defer body.Close()
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
	g.WriteString(e.Content)
	if e.Predicted > 0 {
		missing := e.Predicted - len(e.Tokens) - (len(g.ids) - g.base)
		if missing < 0 || e.Predicted > g.body.NPredict {
			return engine.Fail(record.BadOutput, "llama-server counts %d tokens where its events held %d", e.Predicted,
				len(g.ids)-g.base+len(e.Tokens))
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
	g.ids = append(g.ids, id)
	g.Tell(id, at)
}

// tell keeps tokens behind one that the stream lost.
func (g *generation) tell(t record.Token) {
	if g.heldBack > 0 {
		g.kept = append(g.kept, t)
	} else {
		g.token(t)
	}
}

// finish reads the last event, which has the server's own figures.
func (g *generation) finish(ctx context.Context, e event) error {
	figures, err := reported(e.Timings)
	if err != nil {
		return engine.Fail(record.BadOutput, "%w", err)
	}
	g.usage.Reported = together(g.usage.Reported, figures)
	if g.resumed == 0 { // what is asked for behind the end of a text has all that came before in the cache
		g.usage.CachedTokens = int(g.usage.Reported["cache_n"])
	}
	g.usage.Reported["tokens_predicted"] += float64(e.Predicted)
	g.usage.Reported["tokens_evaluated"] = float64(e.Evaluated)
	g.cached, g.slot = e.Cached, e.Slot
	if g.body.Temperature > 0 {
		g.usage.Reported["seed"] = float64(g.body.Seed)
	}
	if len(g.ids) == g.base {
		return engine.Fail(record.BadOutput, "llama-server ended a generation without a token")
	}
	g.usage.Finish = "stop"
	if e.StopType == "limit" || len(g.ids)-g.base == g.body.NPredict {
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
	again.NPredict = len(g.ids) - g.base
	ids, err := g.client.whole(ctx, again)
	if err != nil {
		return err
	}
	if len(ids) != again.NPredict && !g.batched {
		return engine.Fail(record.BadOutput, "the same completion asked for twice has %d tokens, then %d",
			again.NPredict, len(ids))
	}
	for i, t := range g.kept {
		at := t.Index - g.base
		parts := at >= len(ids) || t.ID != unknown && t.ID != ids[at]
		switch {
		case parts && !g.batched:
			return engine.Fail(record.BadOutput, "the same completion asked for twice parts at token %d: %d, then %d",
				t.Index, t.ID, ids[at])
		case parts || g.parted: // what was lost behind that is not to be had
			g.parted = true
		default:
			g.kept[i].ID, g.ids[t.Index] = ids[at], ids[at]
		}
	}
	for _, t := range g.kept {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		g.token(t)
	}
	g.kept = nil
	return nil
}

// measured fills in what the client saw, also of a generation that broke off.
func (g *generation) measured() {
	g.usage.Text = g.String()
	decode := ""
	if g.N > 1 {
		decode = "at the client: first to last token's event read"
	}
	g.usage.Spans = g.Spans(g.usage.Sent,
		"at the client: request handed over, to the first token's event read; without tokenising", decode)
}

// warn tells what a reader of its figures must know.
func (g *generation) warn(p engine.Probe) {
	const heldBack = "llama-server sends no event for a token that ends inside a character"
	if g.parted {
		engine.Warn(p, "ids-lost", heldBack+"; asked again for the ids, among other requests or with another part of "+
			"the prompt in its cache, it said something else: some tokens carry no id")
	}
	if g.heldBack > 0 {
		engine.Warn(p, "held-back-tokens", heldBack+": %d of %d tokens carry the time of the next event "+
			"and the id of an untimed second generation", g.heldBack, len(g.ids))
	}
	if g.resumed > 0 {
		engine.Warn(p, "behind-end", "the text ended %d time(s) before its length; llama-server was asked to go on "+
			"behind it, which costs a prefill each: its decode speed is not comparable", g.resumed)
	}
}

// counted warns where the server's own counts, which stay in the record, are not what came.
func (g *generation) counted(p engine.Probe) {
	own := g.usage.Reported
	if n, reported := own["predicted_n"]; reported && int(n) != len(g.ids) {
		engine.Warn(p, "counts-differ", "llama-server counts %.0f tokens generated, and %d came", n, len(g.ids))
	}
	if n, reported := own["prompt_n"]; reported && g.resumed == 0 &&
		int(n)+g.usage.CachedTokens != len(g.usage.PromptIDs) {
		engine.Warn(p, "counts-differ",
			"llama-server counts %.0f tokens of the prompt evaluated and %d from a cache, and made %d of it",
			n, g.usage.CachedTokens, len(g.usage.PromptIDs))
	}
}
