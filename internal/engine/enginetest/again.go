package enginetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// atOnce asks for a second generation while one goes on.
func (l *launch) atOnce(t *testing.T, known Generation) {
	if l.engine.Caps().Requests == 1 {
		l.refused(t, known)
		return
	}
	l.sideBySide(t)
}

// refused asks for a second generation at the first one's third token, or first piece, of which there may be more or fewer the next
// time: it gets ErrBusy at once, and the first goes on.
func (l *launch) refused(t *testing.T, known Generation) {
	type answer struct {
		tokens int
		err    error
	}
	second := make(chan answer, 1)
	ask := func() {
		var a answer
		_, a.err = l.session.Generate(limit(t), l.request(l.MaxTokens), func(record.Token) { a.tokens++ })
		second <- a
	}
	var refusal answer
	at := 0
	if l.engine.Caps().Exact {
		at = min(2, len(known.Tokens)-1)
	}
	first, err := l.generate(limit(t), t, l.request(l.MaxTokens), func(tok record.Token) {
		if tok.Index != at {
			return
		}
		go ask()
		select {
		case refusal = <-second:
		case <-time.After(patience / 3): // it waits for the first: that one has to go on
			t.Error("a second generation is not refused while the first goes on")
			go func() { <-second }()
		}
	})
	if err != nil {
		t.Fatalf("the first of two generations: %v", err)
	}
	if !errors.Is(refusal.err, engine.ErrBusy) || refusal.tokens != 0 {
		t.Errorf("a second generation while one goes on yields %d tokens and the error %v, want ErrBusy", refusal.tokens,
			refusal.err)
	}
	report(t, append(first.Faults(l.slack()), l.Faults(first)...))
	if !first.Same(known) {
		t.Errorf("a generation that refused another says %v %q, want %v %q", first.IDs(), first.Usage.Text, known.IDs(),
			known.Usage.Text)
	}
	l.right(t, l.MaxTokens)
}

// sideBySide lets two prompts be answered at once: each as it is alone.
func (l *launch) sideBySide(t *testing.T) {
	requests := []engine.Request{l.request(l.MaxTokens), l.request(l.MaxTokens)}
	requests[1].Prompt = l.Prompt + " " + l.Prompt
	var alone [2]Generation
	for i, r := range requests {
		var err error
		if alone[i], err = l.generate(limit(t), t, r, nil); err != nil {
			t.Fatalf("prompt %d alone: %v", i+1, err)
		}
	}
	type answer struct {
		Generation
		err error
	}
	var answers [2]chan answer
	for i, r := range requests {
		answers[i] = make(chan answer, 1)
		go func() {
			g, err := l.generate(limit(t), t, r, nil)
			answers[i] <- answer{g, err}
		}()
	}
	for i := range answers {
		got := <-answers[i]
		if got.err != nil {
			t.Errorf("prompt %d beside another: %v", i+1, got.err)
			continue
		}
		report(t, got.Generation.Faults(l.slack()))
		if !got.Same(alone[i]) {
			t.Errorf("prompt %d beside another gives %v %q, alone %v %q", i+1, got.IDs(), got.Usage.Text, alone[i].IDs(),
				alone[i].Usage.Text)
		}
	}
}

// restart unloads the model and loads it again in the same session, and once too often.
func (l *launch) restart(t *testing.T, known Generation) {
	l.unload(t)
	if _, err := l.generate(limit(t), t, l.request(1), nil); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("Generate after Unload gives the error %v, want one line", err)
	}
	l.load(t)
	if again := l.right(t, l.MaxTokens); !again.Same(known) {
		t.Errorf("loaded again it says %v %q, want %v %q", again.IDs(), again.Usage.Text, known.IDs(), known.Usage.Text)
	}
	l.within("Load", func() {
		if err := l.session.Load(limit(t), l.Model); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("Load of a session that has its model gives the error %v, want one line", err)
		}
	})
	l.right(t, l.MaxTokens)
}
