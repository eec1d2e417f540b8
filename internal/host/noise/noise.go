// Package noise measures how steady a machine is, before its figures are believed: the same fixed work again and again
// on the processor, in memory, on a disk, and with a browser. What the times of equal work vary by, the machine adds to
// every figure.
//
// It says nothing about how much engines vary by themselves, and a machine that is quiet now may be busy tonight.
package noise

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"llmparity/internal/stats"
)

// Work is a fixed amount of work.
type Work struct {
	Name string // "memory bandwidth"
	Unit string // of Amount: "GB/s" after division by seconds
	// Amount is how much of the unit one call does; 0: the time itself is shown, in ms.
	Amount float64
	Do     func(context.Context) error
	Least  int // how many times at least, whatever it takes
}

// Score is how steady one kind of work is.
type Score struct {
	Name    string    `json:"name"`
	Unit    string    `json:"unit,omitempty"`
	Median  float64   `json:"median,omitempty"`
	Seconds []float64 `json:"seconds,omitempty"` // of each call, in order
	// Spread is the standard deviation of launches that do as much, as a share; robust against single ones.
	Spread float64 `json:"spread,omitempty"`
	// Worst is how much slower than the median the slowest call was, as a share.
	Worst float64 `json:"worst,omitempty"`
	// Drift is how much slower the last call is than the first, as a share, by a line through all; 0 if chance explains
	// it.
	Drift   float64 `json:"drift,omitempty"`
	Skipped string  `json:"skipped,omitempty"` // why it was not done
}

// Tolerance is what so many launches a side can hold.
type Tolerance struct {
	Launches int     `json:"launches"`
	Change   float64 `json:"change"` // a share: a change of it is found in nine of ten cases
}

// Result has the scores of a machine.
type Result struct {
	Machine    string      `json:"machine"`
	Scores     []Score     `json:"scores"`
	Worst      string      `json:"worst,omitempty"` // the name of the noisiest
	Tolerances []Tolerance `json:"tolerances"`      // by the noisiest
}

// Measure does all kinds of work in turn, so that a disturbance meets all of them, for about so long each.
func Measure(ctx context.Context, machine string, all []Work, each time.Duration) (*Result, error) {
	r := &Result{Machine: machine, Scores: make([]Score, len(all)), Tolerances: []Tolerance{}}
	spent := make([]time.Duration, len(all))
	for i, w := range all {
		r.Scores[i] = Score{Name: w.Name, Unit: w.Unit}
		if err := w.Do(ctx); err != nil { // it also warms up
			if context.Cause(ctx) != nil {
				return nil, context.Cause(ctx)
			}
			r.Scores[i].Skipped = err.Error()
		}
	}
	for busy := true; busy; {
		busy = false
		for i, w := range all {
			s := &r.Scores[i]
			if s.Skipped != "" || spent[i] >= each && len(s.Seconds) >= w.Least {
				continue
			}
			busy = true
			began := time.Now()
			err := w.Do(ctx)
			took := time.Since(began)
			if cause := context.Cause(ctx); cause != nil {
				return nil, cause
			}
			if err != nil {
				s.Skipped = err.Error()
				continue
			}
			spent[i] += took
			s.Seconds = append(s.Seconds, took.Seconds())
		}
	}
	most := -1.0
	for i, w := range all {
		s := &r.Scores[i]
		s.conclude(w)
		if s.Skipped == "" && s.Spread > most {
			most, r.Worst = s.Spread, s.Name
		}
	}
	if most < 0 {
		return nil, errors.New("nothing could be measured here")
	}
	r.Tolerances = Held(most)
	return r, nil
}

// conclude fills in what follows from the times.
func (s *Score) conclude(w Work) {
	if s.Skipped != "" {
		s.Seconds = nil
		return
	}
	logs := make([]float64, len(s.Seconds))
	for i, v := range s.Seconds {
		logs[i] = math.Log(v)
	}
	mid := stats.Median(s.Seconds)
	s.Median = mid * 1000
	if w.Amount > 0 {
		s.Median = w.Amount / mid
	} else {
		s.Unit = "ms"
	}
	// The median of distances does not see that one call in four is twice as slow; the inner nine tenths do.
	sorted := slices.Sorted(slices.Values(logs))
	inner := sorted[int(0.95*float64(len(sorted)-1)+0.5)] - sorted[int(0.05*float64(len(sorted)-1)+0.5)]
	s.Spread = max(stats.RobustDeviation(logs), inner/(2*1.645))
	s.Worst = slices.Max(s.Seconds)/mid - 1
	if slope, p := stats.Drift(logs); p < stats.Alpha {
		s.Drift = math.Expm1(slope * float64(len(logs)-1))
	}
}

// Held are the changes that launches of such a spread can show, by their number.
func Held(spread float64) (out []Tolerance) {
	for _, p := range stats.TenthFound() {
		if slices.Contains([]int{6, 10, 20, 30}, p.Launches) {
			out = append(out, Tolerance{p.Launches, 0.1 * spread / p.Vary})
		}
	}
	return out
}
