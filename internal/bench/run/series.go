package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/score"
	"llmparity/internal/bench/until"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// series is the launches of a cell: its engine and its progress.
type series struct {
	record.Cell
	engine       engine.Engine
	gaveUp       error         // why it gets no more launches
	recorded     bool          // that reason is in the record
	spent        time.Duration // time of its attempts in this process
	expired      bool          // its time limit is reached
	failedStarts int           // consecutive launches that did not start
	enough       *until.Rule   // the rule of --until-ci; nil: a fixed number of repetitions
	left         int           // attempts to come
	judged       bool
	ran          bool // an attempt succeeded
	memory       record.Prediction
	likely       []int         // likeliest tokens in its scores
	output       *score.Output // what its first counted launch generated; nil: none, or token ids unknown
}

// over reports that the cell gets no more attempts.
func (c *series) over() bool { return c.gaveUp != nil || c.expired || c.enough.Stopped() }

// named adds the engine's name to an error that does not begin with it.
func (c *series) named(err error) error {
	if strings.HasPrefix(err.Error(), c.Engine+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", c.Engine, err)
}

// seriesOf are the cells of a setup, as far as the plan alone defines them.
func seriesOf(s *plan.Setup) (out []*series) {
	for _, c := range s.Cells {
		out = append(out, &series{Cell: c})
	}
	return out
}

// describe adds to a setup's cells what their engines and their model say.
func (s *current) describe() {
	for _, c := range s.cells {
		c.engine = s.Engines[slices.Index(s.Plan.Engines, c.Engine)]
		caps := c.engine.Caps()
		c.Engine = c.engine.Name()
		c.Model = s.Model.Model
		if m := s.Of(c.engine).Model; s.Model.Forms != nil {
			m.Form, m.Name = m.Name, c.Model.Name
			c.Model = m
		}
		c.Model.Context = s.Plan.Context
		c.Isolation, c.PromptCache = caps.Isolation, record.CacheOff
		c.StopsAtEnd, c.NoTokenIDs, c.Pieces, c.PerGeneration = !caps.IgnoreEOS, !caps.TokenIDs, !caps.Exact,
			caps.PerGeneration
		if caps.PromptCache {
			c.PromptCache = record.CacheOn
		}
	}
}

// giveUp ends a cell whose error only a person can fix, or whose launches don't start.
func (c *series) giveUp(err error) {
	if engine.ClassOf(err) == record.Start {
		if c.failedStarts++; c.failedStarts < mostFailedStarts {
			return
		}
		c.gaveUp = err
	} else if _, ok := errors.AsType[*fault.Error](err); ok {
		c.gaveUp = err
	}
}

// mostFailedStarts is how many consecutive launches may fail to start before their cell is given up.
const mostFailedStarts = 2
