package ollama

import (
	"context"
	"time"

	"llmparity/internal/engine"
)

// stuck is how long Ollama may take for one token after a generation that was given up. Where it takes longer because a large batch is
// still being computed, a load too many does no harm.
const stuck = 10 * time.Second

// unstick sees to it that Ollama answers after a generation that was given up, which may hold up all that come after it, for ever: where
// its client goes while a piece is on its way, whoever brings the next one waits for somebody to take it, and keeps the model's only turn
// (GenerateHandler in 0.6.5). What was asked of another runner waits for nobody.
func (s *session) unstick(ctx context.Context, l *loaded) error {
	if !l.givenUp.Load() {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, s.stuck)
	defer cancel()
	_, err := s.one(soon, l, ".")
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && soon.Err() != nil:
		if err := s.renew(ctx, l); err != nil {
			return err
		}
	case err != nil && asRefusal(err) == nil: // the vocabulary may have no dot: an answer all the same
		return err
	}
	l.givenUp.Store(false)
	return nil
}

// renew has Ollama start its runner anew.
func (s *session) renew(ctx context.Context, l *loaded) error {
	s.warn("runner-renewed", "Ollama did not answer within %v after a generation that was given up: its runner was started anew, and what was in the old one's cache is gone", s.stuck)
	if err := s.expire(ctx, l); err != nil {
		return err
	}
	if _, err := s.client.whole(ctx, generate{Model: l.name, KeepAlive: s.keep(), Options: l.options}); err != nil {
		return err
	}
	s.family.look(ctx)
	l.runner.Store(int64(s.family.runner(l.blobs).pid))
	l.fresh = s.own != nil
	return nil
}

// free leaves a model that was in memory before us as it was found: whoever asks next gets an answer. Where a generation of ours that
// was given up holds it up, it goes, and the next request loads it.
func (s *session) free(ctx context.Context, l *loaded) error {
	if !l.givenUp.Load() {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, s.stuck)
	defer cancel()
	body := generate{Model: l.name, Prompt: ".", Raw: true, KeepAlive: s.keep(), Options: sampling(l.options, engine.Request{MaxTokens: 1})}
	_, err := s.client.whole(soon, body)
	if err == nil || asRefusal(err) != nil {
		return nil // a refusal is an answer all the same
	}
	if soon.Err() == nil || ctx.Err() != nil {
		return err
	}
	s.warn("runner-renewed", "Ollama did not answer within %v after a generation that was given up: %s was taken out of its memory, and comes back with the next request", s.stuck, l.name)
	return s.expire(ctx, l)
}
