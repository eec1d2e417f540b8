package ollama

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/launch"
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

// lost returns how it shows that a slot is lost; empty: none is.
func (s *session) lost(ctx context.Context, l *loaded) (string, error) {
	soon, cancel := context.WithTimeout(ctx, s.stuck)
	defer cancel()
	_, err := s.one(soon, l, ".")
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && soon.Err() != nil:
		return fmt.Sprintf("did not answer within %v", s.stuck), nil
	case err != nil && wire.RefusalOf(err) == nil: // a refusal, for example of the dot, is an answer
		return "", err
	}
	if l.slots == 1 {
		return "", nil
	}
	if s.own == nil { // other clients may be using it
		s.unsure(l, "in a running server", "")
		return "", nil
	}
	if together, err := s.together(ctx, l); err != nil || together {
		return "", err
	}
	return fmt.Sprintf("did not answer %d requests together", l.slots), nil
}

// together reports whether as many generations as there are slots can overlap: each starts before any ends. Short ones
// may miss each other by chance, so longer ones follow. None is cancelled.
func (s *session) together(ctx context.Context, l *loaded) (bool, error) {
	for _, tokens := range []int{8, 64, 256} {
		r := engine.Request{Prompt: "1, 2, 3, 4,", MaxTokens: max(1, min(tokens, l.context/2))}
		texts, errs := make([]*generation, l.slots), make([]error, l.slots)
		var all sync.WaitGroup
		for i := range texts {
			texts[i] = &generation{client: s.client, Text: launch.Text{Token: func(record.Token) {}},
				max: r.MaxTokens, body: s.body(l, r)}
			all.Go(func() { errs[i] = texts[i].run(ctx) })
		}
		all.Wait()
		if err := cmp.Or(ctx.Err(), unanswered(texts, errs)); err != nil {
			return false, err
		}
		// else they could be mistaken for the next request's
		for i := 0; i < len(texts) && !l.unreported; i++ {
			_, _ = s.own.said.await(texts[i].usage.PromptTokens)
		}
		if overlap(texts) {
			return true, nil
		}
	}
	return false, nil
}

// unanswered returns the error of a request that got neither a piece nor a refusal. A partial text counts as an
// answer.
func unanswered(texts []*generation, errs []error) error {
	for i, err := range errs {
		if err != nil && texts[i].N == 0 && wire.RefusalOf(err) == nil {
			return err
		}
	}
	return nil
}

// overlap reports whether each started before any ended, by the server's clock: pieces are fractions of a millisecond
// apart, so the times at which they are read say little.
func overlap(texts []*generation) bool {
	var begun, ended []time.Time
	for _, g := range texts {
		first, err := time.Parse(time.RFC3339, g.made[0])
		last, err2 := time.Parse(time.RFC3339, g.made[1])
		if err != nil || err2 != nil {
			return false // one piece or none
		}
		begun, ended = append(begun, first), append(ended, last)
	}
	return slices.MaxFunc(begun, time.Time.Compare).Before(slices.MinFunc(ended, time.Time.Compare))
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
	s.family.look(ctx)
	l.runner.Store(int64(s.family.runner(l.blobs).pid))
	l.fresh = s.own != nil
	return nil
}

// free makes sure that a model that was loaded before us answers other clients. If a cancelled generation of ours
// blocks it, the model is unloaded, and the next request loads it again.
func (s *session) free(ctx context.Context, l *loaded) error {
	if !l.givenUp.Load() {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, s.stuck)
	defer cancel()
	_, err := s.client.whole(soon, s.body(l, engine.Request{Prompt: ".", MaxTokens: 1}))
	if err == nil || wire.RefusalOf(err) != nil {
		return nil // a refusal is an answer
	}
	if soon.Err() == nil || ctx.Err() != nil {
		return err
	}
	s.warn("runner-renewed", "Ollama did not answer within %v after a cancelled generation: %s was unloaded, and the next request loads it again", s.stuck, l.name)
	return s.expire(ctx, l)
}
