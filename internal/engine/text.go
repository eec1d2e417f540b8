package engine

import (
	"context"
	"strings"
	"time"

	"llmparity/internal/record"
)

// Text collects a text while it is generated: tokens or pieces, with the times at which they were read.
type Text struct {
	strings.Builder
	Token       func(record.Token) // called for each
	N           int
	First, Last time.Time
}

// Tell reports the next token. Its text may arrive later.
func (t *Text) Tell(id int, at time.Time) {
	if t.N == 0 {
		t.First = at
	}
	t.Last = at
	t.N++
	t.Token(record.Token{Index: t.N - 1, ID: id, At: at})
}

// Piece reports a piece of text without an id.
func (t *Text) Piece(text string, at time.Time) {
	t.WriteString(text)
	t.Tell(record.NoID, at)
}

// Spans returns the spans of prefill, from begin, and decode, with how each was measured. Fewer than two timed tokens
// have no decode. There are no spans before the first token.
func (t *Text) Spans(begin time.Time, timed int, prefill, decode string) []record.Span {
	if t.N == 0 {
		return nil
	}
	spans := []record.Span{{Name: record.Prefill, Begin: begin, End: t.First, How: prefill}}
	if timed > 1 {
		spans = append(spans, record.Span{Name: record.Decode, Begin: t.First, End: t.Last, How: decode})
	}
	return spans
}

// Window returns the usable context, given the requested (0: none) and the actual one, and warns if they differ.
func Window(to Teller, who string, asked, made int) int {
	if asked == 0 || asked == made {
		return made
	}
	Warn(to, "context-differs", "%s made a context of %d tokens instead of %d", who, made, asked)
	return min(asked, made)
}

// Within returns ctx so that it also ends with another context, such as that of a session's life.
func Within(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if life.Err() != nil {
		cancel() // at once
	}
	stop := context.AfterFunc(life, cancel)
	return ctx, func() { stop(); cancel() }
}
