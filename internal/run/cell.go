package run

import (
	"errors"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// cell is a cell with the engine that carries it out.
type cell struct {
	record.Cell
	engine engine.Engine
	given  error // why its launches are given up
	judged bool
	memory record.Prediction
	likely []int // tokens that it would have said, or nearly, when it scored
	said   *said // what its first launch that counts generated; nil: there is none, or no ids are known of it
}

// cellsOf makes a setup's cells, shape by shape. Their numbers begin at from.
func cellsOf(s Setup, from int) []*cell {
	var out []*cell
	for _, shape := range s.Shapes {
		for _, e := range s.Engines {
			c := sketch(s.Setup, shape, e.Name(), from+len(out))
			caps := e.Caps()
			c.Model = s.Model.Model
			c.Model.Context = s.Plan.Context
			c.Isolation, c.PromptCache = caps.Isolation, record.CacheOff
			c.StopsAtEnd, c.NoTokenIDs, c.Pieces, c.PerGeneration = !caps.IgnoreEOS, !caps.TokenIDs, !caps.Exact, caps.PerGeneration
			if caps.PromptCache {
				c.PromptCache = record.CacheOn
			}
			out = append(out, &cell{engine: e, Cell: c})
		}
	}
	return out
}

// sketch is a cell as far as the plan alone tells of it.
func sketch(s plan.Setup, shape plan.Shape, engine string, id int) record.Cell {
	p := s.Plan
	c := record.Cell{ID: id, Engine: engine, Model: record.Model{Name: p.Model, Context: max(p.Context, 0)}, PromptID: shape.PromptID,
		Prompt: shape.Prompt, InputTokens: shape.InputTokens, MaxTokens: shape.MaxTokens, Temperature: p.Temperature,
		Repetitions: p.Repetitions, Setup: s.ID, KVDType: p.KVDType, Start: p.Start, Traffic: shape.Traffic}
	c.Reused, c.Shared = p.Isolation == plan.Reused || p.Isolation == plan.Shared, p.Isolation == plan.Shared
	return c
}

// giveUp keeps a cell from failing again and again for a reason that a person must remove.
func (c *cell) giveUp(err error) {
	var f *fault.Error
	if errors.As(err, &f) {
		c.given = err
	}
}
