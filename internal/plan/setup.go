package plan

import (
	"iter"

	"llmparity/internal/record"
)

// Setup is a plan whose axes have one value each, but for those that need no launch of their own: its Shapes.
type Setup struct {
	ID     int  // from 1, in the plan's order
	Plan   Plan // its lists of axes are empty, and what they said stands in Engines, Model, DType, KVDType, WebLLMVersion, Context, Threads, Slots, Start
	Shapes []Shape
}

// Shape is what is asked of an engine in a cell.
type Shape struct {
	PromptID    int     // from 1 within the plan; the same text, source or number of tokens has the same number in every setup
	Prompt      string  // empty where InputTokens says how long it is to be: who knows the model's tokenizer makes it
	Source      *Source // where the prompt, or those of its requests, stand in a file; nil: nowhere
	InputTokens int
	MaxTokens   int
	Traffic     *record.Traffic // nil: one request
	Engines     []string        // of the setup's, those that are asked; nil: all
}

// Asks tells whether an engine of the setup is asked this.
func (s Shape) Asks(engine string) bool {
	if s.Engines == nil {
		return true
	}
	for _, e := range s.Engines {
		if e == engine {
			return true
		}
	}
	return false
}

// Cells is how many a setup has.
func (s Setup) Cells() int {
	n := 0
	for _, shape := range s.Shapes {
		if shape.Engines == nil {
			n += len(s.Plan.Engines)
		} else {
			n += len(shape.Engines)
		}
	}
	return n
}

// Count tells how many setups and cells a plan has, repetitions not counted. It expands nothing.
func (p Plan) Count() (setups, cells int64, err error) {
	for s := range p.Setups() {
		setups++
		cells += int64(s.Cells())
	}
	return setups, cells, nil
}

// Setups gives them in order; each is made when its turn comes.
func (p Plan) Setups() iter.Seq[Setup] {
	return func(yield func(Setup) bool) {
		s := Setup{ID: 1, Plan: p}
		for i, text := range p.Prompts {
			s.Shapes = append(s.Shapes, Shape{PromptID: i + 1, Prompt: text, MaxTokens: p.MaxTokens})
		}
		yield(s)
	}
}

// Unserved tells what a setup's plan asks for that an engine here does not do: a line each, the field first. It knows of no file and no
// version.
func (p Plan) Unserved(engine string) []string { return nil }

// Set gives an axis, by the name of its list (input_lengths, output_lengths, batch_sizes, concurrency, dtypes, kv_cache_dtypes,
// webllm_versions, contexts, thread_counts, starts, models, engines), the values that a flag has, in place of what the plan says of it anywhere.
func (p *Plan) Set(axis string, values ...string) error { return nil }
