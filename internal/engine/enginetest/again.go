package enginetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

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

// refused asks for a second generation at the first one's third token, or first piece, of which there may be more or
// fewer the next time: it gets ErrBusy at once, and the first goes on.
func (l *launch) refused(t *testing.T, known Generation) {
	at := 0
	if l.engine.Caps().Exact {
		at = min(2, len(known.Tokens)-1)
	}
	tokens, refusal := 0, error(nil)
	first, err := l.generate(limit(t), t, l.request(l.MaxTokens), func(tok record.Token) {
		if tok.Index == at { // where it waits for the first, neither ends before the limit
			_, refusal = l.session.Generate(limit(t), l.request(l.MaxTokens), func(record.Token) { tokens++ })
		}
	})
	if err != nil {
		t.Fatalf("the first of two generations: %v", err)
	}
	if !errors.Is(refusal, engine.ErrBusy) || tokens != 0 {
		t.Errorf("a second generation while one goes on yields %d tokens and the error %v, want ErrBusy", tokens,
			refusal)
	}
	report(t, append(first.Faults(l.slack()), l.Faults(first)...))
	if !first.Same(known) {
		t.Errorf("a generation that refused another says %v, want %v", first, known)
	}
	l.right(t, l.MaxTokens)
}

// sideBySide lets several prompts be answered at once: each as it is alone. Of an engine that says how many it computes
// together, tokens of each come between those of every other.
func (l *launch) sideBySide(t *testing.T) {
	n := 2
	tokens := l.MaxTokens
	if l.Slots > 0 {
		n, tokens = l.Slots, l.Model.Context/2 // so long that none is done before another begins
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
		if try == 5 { // where one was held up once, on a busy machine, it is not each time
			t.Errorf("some of %d prompts that were asked at once were answered one after the other: %d slots were asked for", n, l.Slots)
			break
		}
	}
	if l.Slots > 0 {
		l.tooMany(t)
	}
}

// together asks all at once.
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

// interleaved tells whether tokens of each come between those of every other.
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

// amid tells whether several tokens came between the first and the last of another.
func (g Generation) amid(o Generation) bool {
	n := 0
	for _, t := range g.Tokens {
		if t.At.After(o.Tokens[0].At) && t.At.Before(o.Tokens[len(o.Tokens)-1].At) {
			n++
		}
	}
	return n > 2
}

// tooMany asks for one more generation than there are slots, while as many go on: it is refused.
func (l *launch) tooMany(t *testing.T) {
	ctx, cancel := context.WithCancel(limit(t))
	defer cancel()
	going := make(chan struct{}, l.Slots)
	var all sync.WaitGroup
	for range l.Slots {
		all.Go(func() {
			// it is given up, or ends before
			_, _ = l.session.Generate(ctx, l.request(l.Model.Context/2), func(tok record.Token) {
				if tok.Index == 0 {
					going <- struct{}{}
					<-ctx.Done()
				}
			})
		})
	}
	for range l.Slots {
		select {
		case <-going:
		case <-limit(t).Done():
			t.Error("not as many generations go on as there are slots")
		}
	}
	if _, err := l.session.Generate(ctx, l.request(1), func(record.Token) {}); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("one more generation than there are slots gives %v, want ErrBusy", err)
	}
	cancel()
	all.Wait()
	l.right(t, l.MaxTokens)
}

// restart unloads the model and loads it again in the same session, and once too often.
func (l *launch) restart(t *testing.T, known Generation) {
	l.unload(t)
	if _, err := l.generate(limit(t), t, l.request(1), nil); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("Generate after Unload gives the error %v, want one line", err)
	}
	l.load(t)
	if again := l.right(t, l.MaxTokens); !again.Same(known) {
		t.Errorf("loaded again it says %v, want %v", again, known)
	}
	l.within("Load", func() {
		if err := l.session.Load(limit(t), l.Model); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("Load of a session that has its model gives the error %v, want one line", err)
		}
	})
	l.right(t, l.MaxTokens)
}
