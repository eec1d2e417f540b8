package protocol

import (
	"errors"
	"time"
)

// clock converts readings of a clock that Go and another program share. off is the error of aligning the two.
type clock struct {
	at  time.Time
	ns  int64
	off time.Duration
}

// time converts an engine's clock reading to our time, which must be between two others.
func (c clock) time(ns int64, after, before time.Time) (time.Time, error) {
	at := c.at.Add(time.Duration(ns - c.ns))
	switch {
	case at.Before(after.Add(-c.off)):
		return at, errors.New(`"t_ns" is before the request or the previous token; it must be the time of the token by CLOCK_MONOTONIC`)
	case at.After(before.Add(c.off)):
		return at, errors.New(`"t_ns" is in the future; it must be the time of the token by CLOCK_MONOTONIC`)
	case at.Before(after):
		return after, nil
	case at.After(before):
		return before, nil
	}
	return at, nil
}
