package run

import (
	"context"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/score"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

// Parts is what executes a setup: what was found out about it before, and what answers later questions.
type Parts struct {
	Engines []engine.Engine // in the order of the setup's plan
	Model   models.Model
	Forms   map[engine.Engine]models.Model // the model as an engine loads it; Model, if an engine has none
	// Expected maps prompts to the tokens that the model certainly generates; it may cover only the first ones. A
	// launch that generates others has failed.
	Expected  map[string][]int
	IDs       map[string][]int // token ids of prompts that a chat template was rendered for; nil: none
	CheckText *score.Check     // text of score checks; nil: what the text engine generates
	Anchored  bool             // the reference implementation computes this model
	Quality   *score.Windows   // that engines score for quality; nil: none
	NoQuality error            // why there is none, though the plan asks for it
	Refused   map[int]error    // why cells can't run here, by number
	Answers                    // nil: nothing is predicted, and there is no traffic
}

// Answers are about what is known only during the run, or takes long.
type Answers interface {
	// Predict predicts a cell's memory, after its engine has prepared.
	Predict(context.Context, record.Cell) record.Prediction
	// Judge reports whether predicted memory fits into free memory and these GPUs.
	Judge(context.Context, record.Prediction, *gpu.Monitor) record.Risk
	// Ask returns the prompt and length of a request of a cell's traffic. In a conversation, Before has all earlier
	// turns.
	Ask(record.Cell, traffic.Request) engine.Request
	// Anchor computes a text from a position on with the reference implementation, and how far it moves by rounding in
	// each of the arithmetics.
	Anchor(ctx context.Context, ids []int, from int, of [][]rounding.Arithmetic) (*score.Anchor, error)
	// Pieces returns the texts of tokens; nil: unknown.
	Pieces(ids []int) map[int]string
}

// Of returns the model as an engine loads it.
func (p Parts) Of(e engine.Engine) models.Model {
	if m, ok := p.Forms[e]; ok {
		return m
	}
	return p.Model
}

// current is the setup that is being executed.
type current struct {
	*plan.Setup
	Parts
	cells  []*series
	order  []turn // to come
	textOf string // the text engine, as in records: all engines score its text; empty: not known yet

	checked checked
}
