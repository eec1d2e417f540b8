package resolve

import (
	"context"
	"slices"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// Parts returns a function that builds what executes a setup. Its engines stay open until another setup needs others.
func (r *Resolver) Parts(p *Plan) func(context.Context, plan.Setup) (run.Setup, error) {
	return func(ctx context.Context, planned plan.Setup) (run.Setup, error) {
		s := p.Setups[planned.ID-1]
		out := run.Setup{Setup: s.Setup}
		if s.err != nil {
			return out, s.err
		}
		err := r.open(ctx, s.launch.set)
		if err == nil {
			out.Expected, err = expected(s)
		}
		if err == nil {
			err = r.checks(s, &out)
		}
		if err != nil {
			return out, err
		}
		reported := &predictor{r: r, s: s, by: map[int]estimatedCell{}}
		out.Model, out.Pieces, out.Ask = s.Model, models.Pieces(s.Model), r.ask(ctx, s)
		out.IDs = s.ids
		if s.Plan.Quality != "" {
			out.Quality = func() (*run.Text, error) { return r.quality(s.Plan.Quality, s.Model) }
		}
		out.Predict, out.Judge, out.Reference = reported.predict, reported.judge,
			func() (string, error) { return p.reference(s) }
		out.Refused = func(c record.Cell) error { return p.Cells[c.ID-1].Verdict.Err() }
		known := map[engine.Engine]Engine{}
		for _, e := range s.launch.set.engines {
			out.Engines, known[e.Engine] = append(out.Engines, e.Engine), e
		}
		out.Form = func(e engine.Engine) models.Model { return known[e].form(s.Model) }
		return out, nil
	}
}

// reference names the reference engine for scoring, as in records: the plan's, else the first outside a browser, else
// the first. It must report token ids, because a text without them can't be forced on an engine. Some engines know that
// only after they were checked.
func (p *Plan) reference(s *Setup) (string, error) {
	all := s.launch.set.engines
	if of := s.Plan.Reference; of != "" {
		switch at := slices.IndexFunc(all, func(e Engine) bool { return e.Planned == of }); {
		case at < 0:
			return of, nil // of another setup
		case all[at].Caps().TokenIDs:
			return all[at].Name(), nil
		}
		return of, fault.New(fault.Usage, "name an engine that does, such as llamacpp or webllm",
			"--reference %s: it does not report token ids, so other engines can't score its text", of)
	}
	var able []Engine
	for at, e := range all {
		runs := func(c Cell) bool { return c.Setup == s && c.at == at && c.Verdict.Answer != engine.Refused }
		if e.Caps().TokenIDs && slices.ContainsFunc(p.Cells, runs) {
			able = append(able, e)
		}
	}
	if len(able) == 0 {
		able = all[:1]
	}
	native := slices.IndexFunc(able, func(e Engine) bool { return !e.Kind.Browser })
	return able[max(native, 0)].Name(), nil
}
