package traffic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"llmparity/internal/record"
)

// Report has the results of a schedule.
type Report struct{ Outcomes []Outcome }

// Err returns how many requests failed and the first failure, or nil.
func (r Report) Err() error {
	failed, first := 0, error(nil)
	for _, o := range r.Outcomes {
		if o.Err == nil {
			continue
		}
		failed++
		// prefer failures of requests that were sent
		if first == nil || o.Err != nil && unsent(first) && !unsent(o.Err) {
			first = o.Err
		}
	}
	if first == nil || len(r.Outcomes) == 1 {
		return first
	}
	return fmt.Errorf("%d of %d requests failed; the first: %w", failed, len(r.Outcomes), first)
}

func unsent(err error) bool { return errors.Is(err, ErrBefore) || errors.Is(err, context.Canceled) }

// Lateness is how late requests were sent although they were due and a place was free.
type Lateness struct{ P50, P99, Max time.Duration }

// Lateness covers all requests that were sent.
func (r Report) Lateness() Lateness {
	var all []time.Duration
	for _, o := range r.Outcomes {
		if !o.Sent.IsZero() {
			all = append(all, o.Late)
		}
	}
	if len(all) == 0 {
		return Lateness{}
	}
	slices.Sort(all)
	rank := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1] } // nearest rank
	return Lateness{rank(50), rank(99), all[len(all)-1]}
}

// tooLate is not small compared to a fast engine's time to first token.
const tooLate = 10 * time.Millisecond

// Warnings warns about a load that was not sent as scheduled.
func (r Report) Warnings() []record.Warning {
	l := r.Lateness()
	if l.P99 < tooLate {
		return nil
	}
	return []record.Warning{{Code: "load-late",
		Text: fmt.Sprintf("1%% of the requests were sent %s or more after they were due and had a place (median %s, most %s): "+
			"the machine is too busy to send them in time. Waiting times count from when a request was due",
			l.P99.Round(time.Millisecond), l.P50.Round(time.Microsecond), l.Max.Round(time.Millisecond))}}
}
