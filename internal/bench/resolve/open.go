package resolve

import (
	"context"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/bench/score"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

// Open returns what executes a setup. Its engines stay open until another setup needs others.
func (p *Resolved) Open(ctx context.Context, planned *plan.Setup) (run.Parts, error) {
	r, s := p.by, p.Chosen[planned.ID-1]
	out := run.Parts{Model: s.Model, Forms: map[engine.Engine]models.Model{}, IDs: s.ids, Refused: map[int]error{}}
	if s.err != nil {
		return out, s.err
	}
	err := r.open(ctx, s.launch.set)
	if err == nil {
		out.Expected, err = expected(s)
	}
	if err != nil {
		return out, err
	}
	later := &answers{predictor: predictor{r: r, s: s, by: map[int]estimatedCell{}}, ask: r.ask(ctx, s),
		pieces: models.Pieces(s.Model)}
	if err := r.checks(s, &out, later); err != nil {
		return out, err
	}
	if s.Plan.Quality != "" {
		out.Quality, out.NoQuality = r.quality(s.Plan.Quality, s.Model)
	}
	for _, c := range s.Cells {
		out.Refused[c.ID] = p.Answers[c.ID-1].Verdict.Err()
	}
	for _, e := range s.launch.set.engines {
		out.Engines = append(out.Engines, e.Engine)
		out.Forms[e.Engine] = e.form(s.Model)
	}
	out.Answers = later
	return out, nil
}

// answers are what a run asks about a setup's cells.
type answers struct {
	predictor
	ask    func(record.Cell, traffic.Request) engine.Request
	pieces func(ids []int) map[int]string // nil: unknown
	anchor *models.Model                  // that the reference implementation computes; nil: none
}

// Ask returns a request of a cell's traffic.
func (a *answers) Ask(c record.Cell, q traffic.Request) engine.Request { return a.ask(c, q) }

// Pieces returns the texts of tokens.
func (a *answers) Pieces(ids []int) map[int]string {
	if a.pieces == nil {
		return nil
	}
	return a.pieces(ids)
}

// Anchor computes a text with the reference implementation.
func (a *answers) Anchor(ctx context.Context, ids []int, from int, of [][]rounding.Arithmetic) (*score.Anchor, error) {
	return anchor(ctx, *a.anchor, ids, from, of)
}
