package resolve

import (
	"cmp"
	"context"
	"math"
	"slices"

	"llmparity/internal/bench/run"
	"llmparity/internal/bench/score"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

// mostAnchored limits the models that the reference implementation computes: it takes some seconds for each 100 million
// parameters.
const mostAnchored = 200e6

// tinyText returns the text that engines score of the built-in model: a prompt, and what the model generates after it.
func (r *Resolver) tinyText(m models.Model) (*score.Check, error) {
	if r.text != nil {
		return r.text, nil
	}
	const prompt, generated = "The quick brown fox jumps over the lazy dog.", 64
	tokenizer, reads, err := reference.Open(m.Path)
	if err != nil {
		return nil, err
	}
	ids := tokenizer.Encode(prompt)
	greedy, _, err := reads.Greedy(ids, generated)
	if err != nil {
		return nil, err
	}
	r.text = &score.Check{Of: "the built-in model's text", IDs: append(ids, greedy...)}
	return r.text, nil
}

// checks adds to a setup what its score checks need.
func (r *Resolver) checks(s *Chosen, out *run.Parts, later *answers) (err error) {
	if !s.Plan.Checks() {
		return nil
	}
	var forms []models.Model
	for _, e := range s.launch.set.engines {
		if m := e.form(s.Model); m.Reference() && m.Path != "" {
			forms = append(forms, m)
		}
	}
	forms = append(forms, s.Model)
	if at := slices.IndexFunc(forms, func(m models.Model) bool { return m.SHA256 == tiny.SHA256 }); at >= 0 {
		if out.CheckText, err = r.tinyText(forms[at]); err != nil {
			return err
		}
		forms = forms[at:]
	}
	m := forms[0]
	small := m.Random() && m.Parameters <= mostAnchored
	if small && m.Reference() && m.Unsupported == nil && m.Unreadable == nil || s.Plan.CheckReference {
		m.Context = s.Plan.Context
		out.Anchored, later.anchor = true, &m
	}
	return nil
}

// anchor computes a text with the reference implementation: once as it is, and once for each kind of arithmetic with
// everything moved by a rounding step of it.
func anchor(ctx context.Context, m models.Model, ids []int, from int, of [][]rounding.Arithmetic) (
	*score.Anchor, error) {
	const less = "leave out --check-reference"
	switch {
	case !m.Reference():
		return nil, fault.New(fault.NotSupported, less, "%s is not a GGUF file", m.Name)
	case m.Unsupported != nil:
		return nil, m.Unsupported
	case m.Unreadable != nil:
		return nil, m.Unreadable
	case m.Parameters > mostAnchored:
		return nil, fault.New(fault.NotSupported, less, "%s has %.0f million parameters; it computes up to %.0f million",
			m.Name, float64(m.Parameters)/1e6, mostAnchored/1e6)
	}
	_, reads, err := reference.Open(m.Path)
	if err != nil {
		return nil, err
	}
	if m.Context > 0 {
		reads.Context(m.Context)
	}
	out := &score.Anchor{Anchor: record.Anchor{SHA256: m.Values(), Yardsticks: map[string]float64{}}}
	err = reads.Score(ctx, ids, from, reference.Steps{}, func(position int, logProbs []float64) {
		out.Scores = append(out.Scores, likeliest(position-from, ids[position], logProbs))
	})
	for _, all := range of {
		if err != nil {
			break
		}
		widest := 0.0
		err = reads.Score(ctx, ids, from, steps(all), func(position int, logProbs []float64) {
			for _, c := range out.Scores[position-from].Top {
				widest = max(widest, math.Abs(logProbs[c.ID]-c.LogProb))
			}
		})
		out.Yardsticks[rounding.Words(all)] = widest
	}
	return out, err
}

// likeliest keeps the likeliest tokens of a position.
func likeliest(position, forced int, logProbs []float64) record.Score {
	ids := make([]int, len(logProbs))
	for i := range ids {
		ids[i] = i
	}
	slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(logProbs[b], logProbs[a]) })
	s := record.Score{Position: position, Forced: forced, LogProb: logProbs[forced]}
	for _, id := range ids[:min(score.Candidates, len(ids))] {
		s.Top = append(s.Top, record.Candidate{ID: id, LogProb: logProbs[id]})
	}
	return s
}

// steps are the rounding steps of arithmetics.
func steps(all []rounding.Arithmetic) reference.Steps {
	s := reference.Steps{Activations: reference.StepOfFloat32, Cache: reference.StepOfFloat32}
	for _, a := range all {
		switch a {
		case rounding.Half:
			s.Activations = reference.StepOfFloat16
		case rounding.HalfCache:
			s.Cache = reference.StepOfFloat16
		case rounding.HalfAttention:
			s.Cache = reference.StepOfFloat16
		case rounding.EightCache:
			s.CacheBits = 8
		case rounding.FourCache:
			s.CacheBits = 4
		case rounding.Eight:
			s.Block = 32
		case rounding.EightWide:
			s.Block = 256
		case rounding.HalfGELU:
			s.GELU = reference.StepOfFloat16
		case rounding.Sines:
			s.Sines = reference.StepOfSines
		}
	}
	return s
}
