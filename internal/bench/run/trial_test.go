package run_test

import (
	"context"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/bench/score"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

// trial is a run of a plan with parts of a test, the same for all setups.
type trial struct {
	run.Options // without Open: the parts below
	run.Parts
	Plan    plan.Plan
	refuses func(record.Cell) error // nil: no cell is refused
	said
}

// said has the answers of a test; those that are nil tell nothing.
type said struct {
	predict func(context.Context, record.Cell) record.Prediction
	judge   func(context.Context, record.Prediction, *gpu.Monitor) record.Risk
	ask     func(record.Cell, traffic.Request) engine.Request
	anchor  func(context.Context, []int, int, [][]rounding.Arithmetic) (*score.Anchor, error)
	pieces  func([]int) map[int]string
}

func (s said) Predict(ctx context.Context, c record.Cell) record.Prediction { return s.predict(ctx, c) }

func (s said) Judge(ctx context.Context, p record.Prediction, g *gpu.Monitor) record.Risk {
	if s.judge == nil {
		return record.Risk{Level: record.RiskUnknown, Places: []record.Place{}}
	}
	return s.judge(ctx, p, g)
}

func (s said) Ask(c record.Cell, q traffic.Request) engine.Request { return s.ask(c, q) }

func (s said) Anchor(ctx context.Context, ids []int, from int, of [][]rounding.Arithmetic) (*score.Anchor, error) {
	return s.anchor(ctx, ids, from, of)
}

func (s said) Pieces(ids []int) map[int]string {
	if s.pieces == nil {
		return nil
	}
	return s.pieces(ids)
}

// options expands the plan.
func (o trial) options() (run.Options, error) {
	if o.predict == nil {
		o.predict = func(context.Context, record.Cell) record.Prediction {
			return record.Prediction{Absent: "nothing is predicted"}
		}
	}
	m, err := o.Plan.Expand()
	o.Matrix = m
	if o.Open == nil {
		o.Open = func(_ context.Context, s *plan.Setup) (run.Parts, error) {
			parts := o.Parts
			parts.Answers, parts.Anchored, parts.Refused = o.said, o.anchor != nil, map[int]error{}
			for _, c := range s.Cells {
				if o.refuses != nil {
					parts.Refused[c.ID] = o.refuses(c)
				}
			}
			return parts, nil
		}
	}
	return o.Options, err
}

// execute runs a trial.
func execute(ctx context.Context, o trial) (string, error) {
	of, err := o.options()
	if err != nil {
		return "", err
	}
	return run.Do(ctx, of)
}

// alternate runs trials with alternating launches.
func alternate(ctx context.Context, sides ...trial) ([]string, []error) {
	var all []run.Options
	for _, side := range sides {
		o, err := side.options()
		if err != nil {
			return nil, []error{err}
		}
		all = append(all, o)
	}
	return run.Alternate(ctx, all...)
}
