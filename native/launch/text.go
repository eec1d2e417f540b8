package launch

import (
	"context"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Text is a text as it comes: tokens, or pieces of it, with the times at which they were read.
type Text struct {
	strings.Builder
	Token       func(record.Token) // is told of each
	N           int
	First, Last time.Time
}

// Tell tells of the next token, which the text need not have by now.
func (t *Text) Tell(id int, at time.Time) {
	if t.N == 0 {
		t.First = at
	}
	t.Last = at
	t.N++
	t.Token(record.Token{Index: t.N - 1, ID: id, At: at})
}

// Piece takes a piece of text without an id.
func (t *Text) Piece(text string, at time.Time) {
	t.WriteString(text)
	t.Tell(record.NoID, at)
}

// Spans are prefill, from a begin, and decode, by how they were obtained; without decode's, that is left out. There are
// none before the first token.
func (t *Text) Spans(begin time.Time, prefill, decode string) []record.Span {
	if t.N == 0 {
		return nil
	}
	spans := []record.Span{{Name: record.Prefill, Begin: begin, End: t.First, How: prefill}}
	if decode != "" {
		spans = append(spans, record.Span{Name: record.Decode, Begin: t.First, End: t.Last, How: decode})
	}
	return spans
}

// Window is what a prompt and its continuation may come to, of a context that was asked for, 0 where none was, and the
// one that was made. It warns where they differ.
func Window(to engine.Teller, who string, asked, made int) int {
	if asked == 0 || asked == made {
		return made
	}
	engine.Warn(to, "context-differs", "%s was asked for a context of %d tokens and made one of %d", who, asked, made)
	return min(asked, made)
}

// Within gives a context that also ends with a session's life.
func Within(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if life.Err() != nil {
		cancel() // now, and not soon
	}
	stop := context.AfterFunc(life, cancel)
	return ctx, func() { stop(); cancel() }
}
