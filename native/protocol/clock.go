package protocol

import (
	"errors"
	"time"
)

// time gives an engine's reading as a time of ours, which must lie between two others.
func (c clock) time(ns int64, after, before time.Time) (time.Time, error) {
	at := c.at.Add(time.Duration(ns - c.ns))
	switch {
	case at.Before(after.Add(-c.off)):
		return at, errors.New(`"t_ns" lies before the request, or before the token before it: it is CLOCK_MONOTONIC's time when the token was there`)
	case at.After(before.Add(c.off)):
		return at, errors.New(`"t_ns" lies in the future: it is CLOCK_MONOTONIC's time when the token was there`)
	case at.Before(after):
		return after, nil
	case at.After(before):
		return before, nil
	}
	return at, nil
}
