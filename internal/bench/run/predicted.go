package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// patience limits the time for predicting all cells, and for judging one.
const (
	patience = 30 * time.Second
	late     = "prediction took longer than 30s"
)

// predictAll records predictions of the cells' memory, unless the run is interrupted.
func (r *runner) predictAll(ctx context.Context, s *current) {
	if s.Answers == nil {
		return
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, c := range s.cells {
		p := record.Prediction{}
		if soon.Err() == nil {
			p = s.Predict(soon, c.Cell)
		}
		switch {
		case ctx.Err() != nil:
			return
		case soon.Err() != nil:
			p = record.Prediction{Absent: late}
		case p.Absent == "" && len(p.Parts) == 0:
			p.Absent = "no information about its memory"
		}
		p.Cell = c.ID
		c.memory = p
		if _, predicted := r.past.Predictions[c.ID]; !predicted {
			r.w.Predict(p)
		}
	}
}

// judgeAll judges all cells of a launch before it starts, because afterwards free memory no longer tells.
func (r *runner) judgeAll(ctx context.Context, s *current, t turn) (first error) {
	of := []*series{t.series}
	if t.Shared && !t.judged {
		of = s.of(t.engine)
	}
	for _, c := range of {
		say := func(e Event) { r.say(s, turn{series: c, warmup: t.warmup, repetition: t.repetition}, e) }
		if err := r.judge(ctx, s, c, say); err != nil {
			c.giveUp(err)
			if first == nil {
				first = fmt.Errorf("%s: %w", c.Engine, err)
			}
		}
	}
	return first
}

// judge checks before a cell's first launch whether its memory fits. An error refuses the cell.
func (r *runner) judge(ctx context.Context, s *current, c *series, say func(Event)) error {
	if c.judged || s.Answers == nil {
		return nil
	}
	c.judged = true
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	risk := s.Judge(soon, c.memory, r.gpus)
	switch {
	case ctx.Err() != nil:
		return nil
	case soon.Err() != nil:
		risk = record.Risk{Level: record.RiskUnknown, Places: []record.Place{}, Reasons: []string{late}}
	}
	risk.Cell, risk.Refused = c.ID, risk.Level == record.RiskHigh && s.Plan.ChecksOOM()
	r.w.Risk(risk)
	reasons := strings.Join(risk.Reasons, "; ")
	switch {
	case risk.Refused:
		do := "--no-check-oom runs it anyway"
		if len(risk.Recommendations) > 0 {
			do = risk.Recommendations[0] + "; " + do
		}
		err := fault.New(fault.WontFit, do, "prompt %d skipped: it is predicted to run out of memory: %s", c.PromptID, reasons)
		say(Event{Kind: Judged, Text: err.Error(), Err: err})
		return err
	case risk.Level == record.RiskHigh, risk.Level == record.RiskMedium:
		say(Event{Kind: Judged, Text: fmt.Sprintf("predicted: %s: %s", risk.Level.Words(), reasons)})
	}
	return nil
}
