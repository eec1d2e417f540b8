package run

import (
	"errors"
	"iter"
	"slices"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// cell is a cell with the engine that carries it out.
type cell struct {
	record.Cell
	engine   engine.Engine
	given    error         // why its launches are given up
	recorded bool          // that it was given up, by an attempt that failed
	spent    time.Duration // by its attempts, in this process
	expired  bool          // its time is over
	lame     int           // launches in a row that did not start
	enough   *looks        // whether it was repeated often enough; nil: as often as the plan says
	left     int           // attempts that are to come
	judged   bool
	memory   record.Prediction
	likely   []int // tokens that it would have said, or nearly, when it scored
	said     *said // what its first launch that counts generated; nil: there is none, or no ids are known of it
}

// over tells that no attempt is to be added.
func (c *cell) over() bool { return c.given != nil || c.expired || c.enough.stopped() }

// cellsOf makes a setup's cells, shape by shape. Their numbers begin at from.
func cellsOf(s Setup, planned plan.Setup, from int) []*cell {
	var out []*cell
	for c := range sketches(plan.Setup{ID: planned.ID, Plan: withEngines(s.Plan, planned.Plan.Engines),
		Shapes: s.Shapes}, from) {
		e := s.Engines[slices.Index(planned.Plan.Engines, c.Engine)]
		caps := e.Caps()
		c.Engine = e.Name()
		c.Model = s.Model.Model
		c.Model.Context = s.Plan.Context
		c.Isolation, c.PromptCache = caps.Isolation, record.CacheOff
		c.StopsAtEnd, c.NoTokenIDs, c.Pieces, c.PerGeneration = !caps.IgnoreEOS, !caps.TokenIDs, !caps.Exact,
			caps.PerGeneration
		if caps.PromptCache {
			c.PromptCache = record.CacheOn
		}
		out = append(out, &cell{engine: e, Cell: c})
	}
	return out
}

func withEngines(p plan.Plan, engines []string) plan.Plan {
	p.Engines = engines
	return p
}

// sketches are a setup's cells, in order, as far as the plan alone tells of them.
func sketches(s plan.Setup, from int) iter.Seq[record.Cell] {
	return func(yield func(record.Cell) bool) {
		id := from
		for _, shape := range s.Shapes {
			for _, e := range s.Plan.Engines {
				if !shape.Asks(e) {
					continue
				}
				if !yield(sketch(s, shape, e, id)) {
					return
				}
				id++
			}
		}
	}
}

func sketch(s plan.Setup, shape plan.Shape, engine string, id int) record.Cell {
	p := s.Plan
	c := record.Cell{ID: id, Engine: engine, Model: record.Model{Name: p.Model, Context: max(p.Context, 0)},
		PromptID: shape.PromptID,
		Prompt:   shape.Prompt, InputTokens: shape.InputTokens, MaxTokens: shape.MaxTokens, Temperature: p.Temperature,
		Repetitions: p.Repetitions, Setup: s.ID, KVDType: p.KVDType, Start: p.Start, Traffic: shape.Traffic}
	c.Reused, c.Shared = p.Isolation == plan.Reused || p.Isolation == plan.Shared, p.Isolation == plan.Shared
	return c
}

// giveUp keeps a cell from failing again and again for a reason that a person must remove, or because nothing starts.
func (c *cell) giveUp(err error) {
	var f *fault.Error
	if engine.ClassOf(err) == record.Start {
		if c.lame++; c.lame < mostLame {
			return
		}
		c.given = err
	} else if errors.As(err, &f) {
		c.given = err
	}
}

// mostLame is how many launches in a row may not start until their cell is given up.
const mostLame = 2
