package damage

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/record/rounding"
)

// How a text is scored: so many positions as a prompt, and so many step by step. Each has so many candidates.
const (
	Prompt     = 48
	Steps      = 16
	Candidates = 20
)

// Tolerances of log-probabilities. Engines without a fault differ by less.
var (
	Tolerance = rounding.Nats([]rounding.Arithmetic{rounding.Single})
	Half      = rounding.Nats([]rounding.Arithmetic{rounding.Half, rounding.HalfCache, rounding.HalfAttention})
)

// Intact is what a model without a fault generates, and how it scores its own text.
type Intact struct {
	IDs    []int // generated after the prompt
	Text   []int // what is scored: the last token of the prompt, and the generated ones
	file   *gguf.File
	prompt []int
	scores [][]float64
}

// NewIntact computes what a model does after a prompt.
func NewIntact(f *gguf.File, prompt []int) (*Intact, error) {
	m, err := reference.Load(f)
	if err != nil {
		return nil, err
	}
	in := &Intact{file: f, prompt: prompt, IDs: greedy(m, "", prompt)}
	in.Text = append([]int{prompt[len(prompt)-1]}, in.IDs...)
	in.scores = score(m, "", in.Text)
	return in, nil
}

// Effect is what a fault changes.
type Effect struct {
	OtherIDs bool    // the generated text is another one
	Apart    float64 // the largest difference of scores
}

// Of computes the effect of a fault in weights or metadata.
func (in *Intact) Of(f Fault) (Effect, error) {
	var b bytes.Buffer
	if err := Write(&b, in.file, f); err != nil {
		return Effect{}, err
	}
	damaged, err := gguf.Read(bytes.NewReader(b.Bytes()), int64(b.Len()), "damaged")
	if err != nil {
		return Effect{}, err
	}
	m, err := reference.Load(damaged)
	if err != nil {
		return Effect{}, err
	}
	return in.effect(m, ""), nil
}

// OfArithmetic computes the effect of a fault of arithmetic.
func (in *Intact) OfArithmetic(name string) (Effect, error) {
	m, err := reference.Load(in.file)
	if err != nil {
		return Effect{}, err
	}
	return in.effect(m, name), nil
}

func (in *Intact) effect(m *reference.Model, arithmetic string) Effect {
	e := Effect{OtherIDs: !slices.Equal(greedy(m, arithmetic, in.prompt), in.IDs)}
	for i, scores := range score(m, arithmetic, in.Text) {
		seen := map[int]float64{}
		for _, id := range candidates(scores) {
			seen[id] = scores[id]
		}
		e.Apart = max(e.Apart, in.Apart(i, seen))
	}
	return e
}

// Apart returns the largest difference of the log-probabilities of an engine's candidates at a position of the text. A
// candidate that the engine lacks has at most the log-probability of the engine's last one.
func (in *Intact) Apart(position int, seen map[int]float64) (apart float64) {
	last := slices.Min(slices.Collect(maps.Values(seen)))
	for _, id := range candidates(in.scores[position]) {
		if _, ok := seen[id]; !ok {
			apart = max(apart, in.scores[position][id]-last)
		}
	}
	for id, p := range seen {
		apart = max(apart, math.Abs(p-in.scores[position][id]))
	}
	return apart
}

// greedy continues a prompt by as many tokens as are scored.
func greedy(m *reference.Model, arithmetic string, prompt []int) (ids []int) {
	s := Start(m, arithmetic, len(prompt))
	for _, id := range prompt[:len(prompt)-1] {
		s.Step(id, false)
	}
	next := prompt[len(prompt)-1]
	for range Prompt + Steps {
		logits := s.Step(next, true)
		next = slices.Index(logits, slices.Max(logits))
		ids = append(ids, next)
	}
	return ids
}

// score returns the log-probabilities of all tokens after each token of a text but its last.
func score(m *reference.Model, arithmetic string, text []int) (all [][]float64) {
	s := Start(m, arithmetic, Prompt+1)
	for _, id := range text[:Prompt+Steps] {
		logits := s.Step(id, true)
		sum := 0.0
		for _, l := range logits {
			sum += math.Exp(float64(l))
		}
		scores := make([]float64, len(logits))
		for i, l := range logits {
			scores[i] = float64(l) - math.Log(sum)
		}
		all = append(all, scores)
	}
	return all
}

// candidates are the likeliest tokens, the best first.
func candidates(scores []float64) []int {
	ids := make([]int, len(scores))
	for i := range ids {
		ids[i] = i
	}
	slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return ids[:Candidates]
}
