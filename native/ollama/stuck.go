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

// stuck is how long Ollama may take for one token after a generation that was given up. Where it takes longer because a
// large batch is still being computed, a load too many does no harm.
const stuck = 10 * time.Second

// unstick sees to it that Ollama answers after a generation that was given up, which may hold up those that come after
// it, for ever: where its client goes while a piece is on its way, whoever brings the next one waits for somebody to
// take it, and keeps one of the model's turns (GenerateHandler in 0.6.5). What was asked of another runner waits for
// nobody.
func (s *session) unstick(ctx context.Context, l *loaded) error {
	if !l.givenUp.Load() {
		return nil
	}
	if l.going.Load() > 0 {
		s.unsure(l, "while others went on", "; that is looked into once none goes on")
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

// unsure says, once, that times may have a wait in them.
func (s *session) unsure(l *loaded, when, then string) {
	if !l.unsure {
		l.unsure = true
		s.warn("slot-unsure", "a generation was given up %s: Ollama may have kept its slot, and others may have waited for theirs%s", when, then)
	}
}

// lost tells how it shows that a turn is lost; empty: none is.
func (s *session) lost(ctx context.Context, l *loaded) (string, error) {
	soon, cancel := context.WithTimeout(ctx, s.stuck)
	defer cancel()
	_, err := s.one(soon, l, ".")
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && soon.Err() != nil:
		return fmt.Sprintf("did not answer within %v", s.stuck), nil
	case err != nil && wire.RefusalOf(err) == nil: // the vocabulary may have no dot: an answer all the same
		return "", err
	}
	if l.slots == 1 {
		return "", nil
	}
	if s.own == nil { // others may be asking it
		s.unsure(l, "in a server that ran already", "")
		return "", nil
	}
	if together, err := s.together(ctx, l); err != nil || together {
		return "", err
	}
	return fmt.Sprintf("did not answer %d requests together", l.slots), nil
}

// together tells whether as many generations as there are slots go on at once: each has begun before any has ended.
// Short ones may miss each other by chance, and are asked for again, longer. None is given up.
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
		// else they might be taken for those of the request that follows
		for i := 0; i < len(texts) && !l.unreported; i++ {
			_, _ = s.own.said.await(texts[i].usage.PromptTokens)
		}
		if overlap(texts) {
			return true, nil
		}
	}
	return false, nil
}

// unanswered is the error of one that has neither a piece nor a refusal: a text that is broken off is an answer all the
// same.
func unanswered(texts []*generation, errs []error) error {
	for i, err := range errs {
		if err != nil && texts[i].N == 0 && wire.RefusalOf(err) == nil {
			return err
		}
	}
	return nil
}

// overlap tells whether each had begun before any ended, by the server's clock: when pieces are read here tells little
// of pieces that are fractions of a millisecond apart.
func overlap(texts []*generation) bool {
	var begun, ended []time.Time
	for _, g := range texts {
		first, err := time.Parse(time.RFC3339, g.made[0])
		last, err2 := time.Parse(time.RFC3339, g.made[1])
		if err != nil || err2 != nil {
			return false // of one piece, or none
		}
		begun, ended = append(begun, first), append(ended, last)
	}
	return slices.MaxFunc(begun, time.Time.Compare).Before(slices.MinFunc(ended, time.Time.Compare))
}

// renew has Ollama start its runner anew.
func (s *session) renew(ctx context.Context, l *loaded, why string) error {
	s.warn("runner-renewed", "Ollama %s after a generation that was given up: its runner was started anew, and what was in the old one's cache is gone", why)
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

// free leaves a model that was in memory before us as it was found: whoever asks next gets an answer. Where a
// generation of ours that was given up holds it up, it goes, and the next request loads it.
func (s *session) free(ctx context.Context, l *loaded) error {
	if !l.givenUp.Load() {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, s.stuck)
	defer cancel()
	_, err := s.client.whole(soon, s.body(l, engine.Request{Prompt: ".", MaxTokens: 1}))
	if err == nil || wire.RefusalOf(err) != nil {
		return nil // a refusal is an answer all the same
	}
	if soon.Err() == nil || ctx.Err() != nil {
		return err
	}
	s.warn("runner-renewed", "Ollama did not answer within %v after a generation that was given up: %s was taken out of its memory, and comes back with the next request", s.stuck, l.name)
	return s.expire(ctx, l)
}
