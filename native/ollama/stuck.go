package ollama

import (
	"context"
	"fmt"
	"time"

	"llmparity/native/wire"
)

// stuck is how long Ollama may take for one token after a cancelled generation. If it takes longer because a large
// batch is being computed, an unnecessary reload does no harm.
const stuck = 10 * time.Second

// unstick makes sure that Ollama answers after a cancelled generation, which can block later ones for ever: if the
// client leaves while a piece is on its way, Ollama's goroutine waits for a reader and never frees its slot
// (GenerateHandler in 0.6.5).
func (s *session) unstick(ctx context.Context, l *loaded) error {
	if !l.givenUp.Load() {
		return nil
	}
	if l.going.Load() > 0 {
		s.unsure(l, "while others were running", "; this is checked when none is running")
		return nil
	}
	why, err := s.lost(ctx, l)
	if err == nil && why != "" {
		err = s.renew(ctx, l, why)
	}
	if err == nil {
		l.givenUp.Store(false)
	}
	return err
}

// unsure warns, once, that times may include a wait.
func (s *session) unsure(l *loaded, when, then string) {
	if !l.unsure {
		l.unsure = true
		s.warn("slot-unsure", "a generation was cancelled %s: Ollama may have kept its slot, so others may have waited%s", when, then)
	}
}

// lost returns how it shows that a slot may be lost; empty: it does not.
func (s *session) lost(ctx context.Context, l *loaded) (string, error) {
	answers, err := s.answers(ctx, l)
	switch {
	case err != nil:
		return "", err
	case !answers:
		return fmt.Sprintf("did not answer within %v", s.stuck), nil
	case l.slots > 1 && s.own != nil: // the others hide it
		return "may have lost one of its slots", nil
	case l.slots > 1: // other clients may be using them
		s.unsure(l, "in a running server", "")
	}
	return "", nil
}

// answers reports whether Ollama generates a token soon. A refusal, for example of the dot, is an answer.
func (s *session) answers(ctx context.Context, l *loaded) (bool, error) {
	soon, cancel := context.WithTimeout(ctx, s.stuck)
	defer cancel()
	_, err := s.one(soon, l, ".")
	switch {
	case err == nil, wire.RefusalOf(err) != nil:
		return true, nil
	case ctx.Err() == nil && soon.Err() != nil:
		return false, nil
	}
	return false, err
}

// renew makes Ollama restart its runner.
func (s *session) renew(ctx context.Context, l *loaded, why string) error {
	s.warn("runner-renewed", "Ollama %s after a cancelled generation: its runner was restarted, which emptied its cache", why)
	if err := s.expire(ctx, l); err != nil {
		return err
	}
	if _, err := s.client.whole(ctx, generate{Model: l.name, KeepAlive: s.keep(), Options: l.options}); err != nil {
		return err
	}
	s.family.tree.Look(ctx)
	l.runner.Store(int64(s.family.runner(l.blobs).pid))
	return nil
}

// free makes sure that a model that was loaded before us answers other clients. If a cancelled generation of ours
// blocks it, the model is unloaded, and the next request loads it again.
func (s *session) free(ctx context.Context, l *loaded) error {
	if !l.givenUp.Load() {
		return nil
	}
	if answers, err := s.answers(ctx, l); answers || err != nil {
		return err
	}
	s.warn("runner-renewed", "Ollama did not answer within %v after a cancelled generation: %s was unloaded, and the next request loads it again", s.stuck, l.name)
	return s.expire(ctx, l)
}
