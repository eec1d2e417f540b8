package enginetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// refused requests a second generation at the first one's third token, or first piece, since the number of pieces
// varies. It must get ErrBusy at once, and the first must continue.
func (l *launch) refused(t *testing.T, known Generation) {
	at := 0
	if l.engine.Caps().Exact {
		at = min(2, len(known.Tokens)-1)
	}
	tokens, refusal := 0, error(nil)
	first, err := l.generate(limit(t), t, l.request(l.MaxTokens), func(tok record.Token) {
		if tok.Index == at { // if it waits for the first, neither ends before the limit
			_, refusal = l.session.Generate(limit(t), l.request(l.MaxTokens), func(record.Token) { tokens++ })
		}
	})
	if err != nil {
		t.Fatalf("first of two generations: %v", err)
	}
	if !errors.Is(refusal, engine.ErrBusy) || tokens != 0 {
		t.Errorf("a second generation during the first yields %d tokens and %v, want ErrBusy", tokens, refusal)
	}
	report(t, append(first.Faults(l.slack()), l.Faults(first)...))
	if !first.Same(known) {
		t.Errorf("a generation that refused another says %v, want %v", first, known)
	}
	l.right(t, l.MaxTokens)
}

// sideBySide sends several prompts at once: each answer must be the same as alone. If the engine has slots, the tokens
// of each must come between those of every other.
func (l *launch) sideBySide(t *testing.T) {
	n := 2
	tokens := l.MaxTokens
	if l.Slots > 0 {
		n, tokens = l.Slots, l.Model.Context/2 // long enough that none ends before another begins
	}
	requests := make([]engine.Request, n)
	alone, beside := make([]Generation, n), make([]Generation, n)
	for i := range requests {
		requests[i] = l.request(tokens)
		requests[i].Prompt = strings.TrimSpace(strings.Repeat(l.Prompt+" ", i+1))
		var err error
		if alone[i], err = l.generate(limit(t), t, requests[i], nil); err != nil {
			t.Fatalf("prompt %d alone: %v", i+1, err)
		}
	}
	for try := 1; ; try++ {
		l.together(t, requests, beside)
		for i, got := range beside {
			if t.Failed() {
				return
			}
			report(t, got.Faults(l.slack()))
			if !got.Same(alone[i]) {
				t.Errorf("prompt %d beside others gives %v, alone %v", i+1, got, alone[i])
			}
		}
		if l.Slots == 0 || interleaved(beside) {
			break
		}
		if try == 5 { // on a busy machine one may be held up, but not every time
			t.Errorf("of %d prompts sent at once some were answered one after the other, despite %d slots", n, l.Slots)
			break
		}
	}
	if l.Slots > 0 {
		l.tooMany(t)
	}
}

// together sends all requests at once.
func (l *launch) together(t *testing.T, requests []engine.Request, answers []Generation) {
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() {
			var err error
			if answers[i], err = l.generate(limit(t), t, r, nil); err != nil {
				t.Errorf("prompt %d beside others: %v", i+1, err)
			}
		})
	}
	all.Wait()
}

// interleaved reports whether tokens of each generation come between those of every other.
func interleaved(all []Generation) bool {
	for i, g := range all {
		for _, o := range all[:i] {
			if !g.amid(o) && !o.amid(g) {
				return false
			}
		}
	}
	return true
}

// amid reports whether at least three tokens came between the first and the last of another generation.
func (g Generation) amid(o Generation) bool {
	n := 0
	for _, t := range g.Tokens {
		if t.At.After(o.Tokens[0].At) && t.At.Before(o.Tokens[len(o.Tokens)-1].At) {
			n++
		}
	}
	return n > 2
}

// tooMany requests one more generation than there are slots, while all slots are in use. It must be refused.
func (l *launch) tooMany(t *testing.T) {
	ctx, cancel := context.WithCancel(limit(t))
	defer cancel()
	going := make(chan struct{}, l.Slots)
	var all sync.WaitGroup
	for range l.Slots {
		all.Go(func() {
			// cancelled, or complete before that
			_, _ = l.session.Generate(ctx, l.request(l.Model.Context/2), func(tok record.Token) {
				if tok.Index == 0 {
					going <- struct{}{}
				} else { // not before: in a batch, the first token of others comes after
					<-ctx.Done()
				}
			})
		})
	}
	for range l.Slots {
		select {
		case <-going:
		case <-limit(t).Done():
			t.Error("fewer generations are running than there are slots")
		}
	}
	if _, err := l.session.Generate(ctx, l.request(1), func(record.Token) {}); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("one generation more than there are slots returns %v, want ErrBusy", err)
	}
	cancel()
	all.Wait()
	l.right(t, l.MaxTokens)
}

// CrashedTab kills the page's process in the middle of a generation: a browser shows a crashed tab.
func CrashedTab(t *testing.T, s engine.Session, p *Probe) {
	t.Helper()
	_, err := s.Generate(limit(t), engine.Request{Prompt: "The", MaxTokens: 200, IgnoreEOS: true},
		func(tok record.Token) {
			if tok.Index == 2 {
				for _, pid := range p.PIDs("renderer") {
					check.Also(t, check.Kill(pid))
				}
			}
		})
	OneLine(t, err, fault.Run, record.Crash, "renderer process ended (killed)")
	if err := s.Unload(limit(t)); engine.ClassOf(err) != record.Crash {
		t.Errorf("Unload after the crash: %v", err)
	}
}

// restart unloads the model, loads it again in the same session, and then once more without an Unload.
func (l *launch) restart(t *testing.T, known Generation) {
	l.unload(t)
	if _, err := l.generate(limit(t), t, l.request(1), nil); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("Generate after Unload returns %v, want one line", err)
	}
	l.load(t)
	if again := l.right(t, l.MaxTokens); !again.Same(known) {
		t.Errorf("after loading again it says %v, want %v", again, known)
	}
	l.within("Load", func() {
		if err := l.session.Load(limit(t), l.Model); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("a second Load without Unload returns %v, want one line", err)
		}
	})
	l.right(t, l.MaxTokens)
}
