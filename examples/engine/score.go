package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"llmparity/internal/models/tiny/damage"
)

// score reports the probability of each token of a text, and the most probable tokens there.
func (e *engine) score(r request) error {
	text := slices.Concat(r.PromptIDs, r.IDs)
	switch {
	case e.model == nil:
		return errors.New("no model is loaded")
	case len(r.PromptIDs) == 0 || len(text) > e.context:
		return fmt.Errorf("cannot score %d tokens after a prompt of %d in a context of %d", len(r.IDs),
			len(r.PromptIDs), e.context)
	case slices.ContainsFunc(text, func(id int) bool { return id < 0 || id >= len(e.tokenizer.Tokens) }):
		return errors.New("the text has a token that is not in the vocabulary")
	}
	sequence := damage.Start(e.model, e.fault, len(r.PromptIDs))
	for i, id := range text[:len(text)-1] {
		if e.cancelled(r) {
			return errors.New("cancelled")
		}
		logits := sequence.Step(id, i+1 >= len(r.PromptIDs))
		if logits != nil {
			e.say(r, "token", likelihoods(logits, text[i+1], r.Top))
		}
	}
	return nil
}

// likelihoods returns the log probabilities of the given token and of the most probable ones: the softmax of the
// logits.
func likelihoods(logits []float32, forced, top int) fields {
	most, sum := logits[largest(logits)], 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l - most))
	}
	of := func(id int) float64 { return float64(logits[id]-most) - math.Log(sum) }
	order := make([]int, len(logits))
	for id := range order {
		order[id] = id
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
	var likeliest []fields
	for _, id := range order[:min(top, len(order))] {
		likeliest = append(likeliest, fields{"token": id, "logprob": of(id)})
	}
	return fields{"token": forced, "logprob": of(forced), "top": likeliest}
}
