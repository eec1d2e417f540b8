package llamacpp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/wire"
)

// generation continues a prompt with one streamed completion or several.
//
// llama-server either ends a completion at the end-of-text token or never chooses that token (ignore_eos). Other
// engines continue after it. To get the same ids, the text so far becomes the prompt of another completion. That costs
// a prefill, which is reported as a warning.
//
// llama-server sends one event per token, but withholds it while the text ends inside a character. The next event then
// carries only the last id, and those before it are lost. The running count in each event shows the gap. From the
// first gap on, tokens are kept back; at the end the same completion is requested again without streaming, which
// returns every id. With the same seed and no cache, it must agree with all ids that were streamed.
type generation struct {
	client *client
	body   completion
	token  func(record.Token)
	engine.Text
	usage  record.Usage
	beyond bool // continue after the end of the text

	ids      []int          // so far; unknown where the stream lost one
	base     int            // how many of them belong to earlier completions
	resumed  int            // how often the text has ended
	kept     []record.Token // of this completion, not yet handed to the caller
	heldBack int
	cached   int // tokens that stay in the slot's KV cache
	slot     int
	// batched: computed together with others, or partly from a cache, so a repetition may sum in another order
	batched bool
	parted  bool // a repeated completion differed
}

const unknown = record.NoID

func (g *generation) run(ctx context.Context) error {
	g.Token = func(t record.Token) {
		if g.heldBack > 0 { // keep back tokens after one whose id was lost
			g.kept = append(g.kept, t)
		} else {
			g.token(t)
		}
	}
	g.usage.Sent = time.Now()
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
	defer cancel() // the server stops when the connection closes
	resp, err := g.client.Send(ctx, http.MethodPost, "/completion", g.body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return wire.Each(ctx, wire.NewLines(resp.Body).NextEvent, func(sent wire.Event) (last bool, err error) {
		if sent.Done() {
			return false, nil
		}
		var e event
		if err := json.Unmarshal(sent.Data, &e); err != nil {
			return false, fmt.Errorf("llama-server sent an invalid event: %w in %.80q", err, sent.Data)
		}
		if e.Error != nil {
			return false, g.client.Complaint(e.Error)
		}
		if err = g.take(e, sent.At); err == nil && e.Stop {
			err = g.finish(ctx, e)
		}
		return e.Stop, err
	})
}

// take adds an event's tokens, and those before it that had no event of their own.
func (g *generation) take(e event, at time.Time) error {
	g.WriteString(e.Content)
	ids := e.Tokens
	if e.Predicted > 0 {
		missing := e.Predicted - len(ids) - (len(g.ids) - g.base)
		if missing < 0 || e.Predicted > g.body.NPredict {
			return engine.Fail(record.BadOutput, "llama-server counts %d tokens, but its events had %d", e.Predicted,
				len(g.ids)-g.base+len(ids))
		}
		g.heldBack += missing
		ids = append(slices.Repeat([]int{unknown}, missing), ids...)
	}
	for _, id := range ids {
		g.ids = append(g.ids, id)
		g.Tell(id, at)
	}
	return nil
}

// finish reads the last event, which has the server's own figures.
func (g *generation) finish(ctx context.Context, e event) error {
	figures, err := wire.Figures(e.Timings)
	if err != nil {
		return engine.Fail(record.BadOutput, "llama-server's timings: %w", err)
	}
	g.usage.Reported = together(g.usage.Reported, figures)
	if g.resumed == 0 { // a continuation finds everything before it in the cache
		g.usage.CachedTokens = int(g.usage.Reported["cache_n"])
	}
	g.usage.Reported["tokens_predicted"] += float64(e.Predicted)
	g.usage.Reported["tokens_evaluated"] = float64(e.Evaluated)
	g.cached, g.slot = e.Cached, e.Slot
	if g.body.Temperature > 0 {
		g.usage.Reported["seed"] = float64(g.body.Seed)
	}
	if len(g.ids) == g.base {
		return engine.Fail(record.BadOutput, "llama-server generated no token")
	}
	g.usage.Finish = "stop"
	if e.StopType == "limit" || len(g.ids)-g.base == g.body.NPredict {
		g.usage.Finish = "length"
	}
	return g.resolve(ctx)
}

// resolve finds the lost ids and hands on the tokens that were kept back.
func (g *generation) resolve(ctx context.Context) error {
	if len(g.kept) == 0 {
		return nil
	}
	again := g.body
	again.NPredict, again.Stream = len(g.ids)-g.base, false
	var whole event
	if err := g.client.Call(ctx, http.MethodPost, "/completion", again, &whole); err != nil {
		return err
	}
	ids := whole.Tokens
	if len(ids) != again.NPredict && !g.batched {
		return engine.Fail(record.BadOutput, "llama-server repeated a completion with %d tokens instead of %d", len(ids),
			again.NPredict)
	}
	for i, t := range g.kept {
		at := t.Index - g.base
		parts := at >= len(ids) || t.ID != unknown && t.ID != ids[at]
		switch {
		case parts && !g.batched:
			return engine.Fail(record.BadOutput, "llama-server repeated a completion, but token %d is %d instead of %d",
				t.Index, ids[at], t.ID)
		case parts || g.parted: // ids lost after this point are unknown
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

// measured records what the client saw, also of a generation that failed.
func (g *generation) measured() {
	g.usage.Text = g.String()
	g.usage.Spans = g.Spans(g.usage.Sent, g.N, "client: request sent to first token's event read; tokenising excluded",
		"client: first token's event read to last one read")
}

// warn reports what affects the figures.
func (g *generation) warn(p engine.Probe) {
	const heldBack = "llama-server sends no event for a token that ends inside a character"
	if g.parted {
		engine.Warn(p, "ids-lost", heldBack+". A second request for the ids gave another text, because it ran beside other "+
			"requests or with part of the prompt cached: some tokens have no id")
	}
	if g.heldBack > 0 {
		engine.Warn(p, "held-back-tokens", heldBack+": %d of %d tokens have the time of the next event, and their ids come "+
			"from an untimed second request", g.heldBack, len(g.ids))
	}
	if g.resumed > 0 {
		engine.Warn(p, "behind-end", "the text ended early %d time(s), and llama-server needed another request with a prefill "+
			"to continue: decode speed is not comparable", g.resumed)
	}
}

// counted warns if the server's own counts, which are recorded, differ from what was received.
func (g *generation) counted(p engine.Probe) {
	own := g.usage.Reported
	if n, reported := own["predicted_n"]; reported && int(n) != len(g.ids) {
		engine.Warn(p, "counts-differ", "llama-server counts %.0f generated tokens, but sent %d", n, len(g.ids))
	}
	if n, reported := own["prompt_n"]; reported && g.resumed == 0 &&
		int(n)+g.usage.CachedTokens != len(g.usage.PromptIDs) {
		engine.Warn(p, "counts-differ",
			"llama-server counts %.0f prompt tokens evaluated and %d cached, but the prompt has %d",
			n, g.usage.CachedTokens, len(g.usage.PromptIDs))
	}
}
