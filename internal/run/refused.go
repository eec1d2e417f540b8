package run

import (
	"context"

	"llmparity/internal/record"
)

// refuse records that a cell can't run here, as was found before anything was launched: an attempt that failed, in no time.
func (r *runner) refuse(ctx context.Context, s *current, t turn, say func(Event)) error {
	if s.Refused == nil {
		return nil
	}
	err := s.Refused(t.Cell)
	if err == nil {
		return nil
	}
	rec := r.w.Begin(t.Cell, t.repetition, t.warmup, load1(ctx))
	rec.End(record.Failed, record.SetUp, err, record.Cost{})
	t.given = err
	say(Event{Kind: Ended, Text: string(record.Failed), Err: err})
	return err
}
