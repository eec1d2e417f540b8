package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// patience limits the time for predicting all cells, and for judging one.
const patience = 30 * time.Second

// predictAll records predictions of the cells' memory, unless the run is interrupted.
func (r *runner) predictAll(ctx context.Context, s *current) {
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, c := range s.cells {
		if s.Predict == nil || ctx.Err() != nil {
			return
		}
		r.predict(soon, s, c)
	}
}

// predict records the prediction of one cell. A failure only leaves it out.
func (r *runner) predict(ctx context.Context, s *current, c *cell) {
	p, why := within(ctx, func(ctx context.Context) record.Prediction { return s.Predict(ctx, c.Cell) })
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	if why != "" {
		p = record.Prediction{Absent: why}
	}
	p.Cell = c.ID
	if p.Absent == "" && len(p.Parts) == 0 {
		p.Absent = "no information about its memory"
	}
	c.memory = p
	if !r.past.Predicted(c.ID) {
		r.w.Predict(p)
	}
}

// judgeAll judges all cells of a launch before it starts, because afterwards free memory no longer tells.
func (r *runner) judgeAll(ctx context.Context, s *current, t turn) (first error) {
	of := []*cell{t.cell}
	if t.Shared && !t.judged {
		of = s.of(t.engine)
	}
	for _, c := range of {
		say := func(e Event) { r.say(s, turn{cell: c, warmup: t.warmup, repetition: t.repetition}, e) }
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
func (r *runner) judge(ctx context.Context, s *current, c *cell, say func(Event)) error {
	if c.judged || s.Judge == nil {
		return nil
	}
	c.judged = true
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	risk, why := within(soon, func(ctx context.Context) record.Risk { return s.Judge(ctx, c.memory, r.gpus) })
	if ctx.Err() != nil {
		return nil
	}
	if why != "" {
		risk = record.Risk{Level: record.RiskUnknown, Places: []record.Place{}, Reasons: []string{why}}
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
		err := fault.New(fault.WontFit, do, "prompt %d skipped: would run out of memory: %s", c.PromptID, reasons)
		say(Event{Kind: Judged, Text: err.Error(), Err: err})
		return err
	case risk.Level == record.RiskHigh, risk.Level == record.RiskMedium:
		say(Event{Kind: Judged, Text: fmt.Sprintf("%s risk of running out of memory: %s", risk.Level, reasons)})
	}
	return nil
}

// within calls f, and returns why there is no result. If f ignores that its time is over, it is left running.
func within[T any](ctx context.Context, f func(context.Context) T) (v T, why string) {
	const late = "prediction took longer than %s"
	if ctx.Err() != nil {
		return v, fmt.Sprintf(late, patience)
	}
	type answer struct {
		v   T
		why string
	}
	came := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if r := recover(); r != nil {
				a.why = fmt.Sprintf("prediction failed: %v", r)
			}
			came <- a
		}()
		a.v = f(ctx)
	}()
	select {
	case a := <-came:
		return a.v, a.why
	case <-ctx.Done():
		return v, fmt.Sprintf(late, patience)
	}
}
