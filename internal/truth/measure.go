package truth

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// MiB is the unit of readings.
const MiB = 1 << 20

// Reading has the figures of sources at one moment, in MiB, by row id. Figures that could not be read are missing.
type Reading map[string]float64

// Add adds a value of a sample, in bytes, to a figure.
func (r Reading) Add(who, name string, s record.Sample) {
	for _, v := range s.Values {
		if v.Name == name {
			r[who+"/"+name] += v.Value / MiB
		}
	}
}

// Subject allocates memory, and has sources.
type Subject interface {
	// Take allocates memory of a kind before it returns.
	Take(ctx context.Context, kind string, bytes int64) error
	GiveBack(ctx context.Context) error
	// Rest waits until the subject is at rest, and reads every source.
	Rest(context.Context) (Reading, error)
	// Others lists other processes that share memory with the subject. If they change, figures are disturbed.
	Others() []int
}

// disturbed is how often to repeat a disturbed measurement.
const disturbed = 20

// Measure allocates size bytes of every kind of a table, repeats times each, and judges the changes of all figures.
func Measure(ctx context.Context, t Table, s Subject, p Platform, size int64, repeats int) (
	Matrix, error) {
	moved := map[string]map[string][]float64{}
	for _, k := range t.Kinds {
		moved[k.ID] = map[string][]float64{}
		// Once without measuring, for what grows only the first time.
		if err := s.Take(ctx, k.ID, size); err != nil {
			return Matrix{}, fmt.Errorf("allocating %d MiB of %s: %w", size/MiB, k.Name, err)
		}
		if err := s.GiveBack(ctx); err != nil {
			return Matrix{}, fmt.Errorf("freeing %s: %w", k.Name, err)
		}
		for range repeats {
			by, err := once(ctx, s, k, size)
			if err != nil {
				return Matrix{}, err
			}
			for row, v := range by {
				moved[k.ID][row] = append(moved[k.ID][row], v)
			}
		}
	}
	return t.matrix(p, float64(size)/MiB, moved), nil
}

// once returns the changes of all figures.
func once(ctx context.Context, s Subject, k Kind, size int64) (Reading, error) {
	for range disturbed {
		others := s.Others()
		before, err := s.Rest(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading before %s: %w", k.Name, err)
		}
		if err := s.Take(ctx, k.ID, size); err != nil {
			return nil, fmt.Errorf("allocating %d MiB of %s: %w", size/MiB, k.Name, err)
		}
		after, err := s.Rest(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading after %s: %w", k.Name, err)
		}
		if err := s.GiveBack(ctx); err != nil {
			return nil, fmt.Errorf("freeing %s: %w", k.Name, err)
		}
		if !slices.Equal(others, s.Others()) {
			continue
		}
		by := Reading{}
		for row, v := range after {
			if was, ok := before[row]; ok {
				by[row] = v - was
			}
		}
		return by, nil
	}
	return nil, fault.New(fault.Run, "end them and try again",
		"can't measure %s: other processes of the same program start and end, which changes shared memory", k.Name)
}

// Rest means so many consecutive readings that differ by less than restWithin.
const (
	restReadings = 3
	restTries    = 40
	restWithin   = 0.25 // MiB
)

// Rest reads at intervals until the readings are stable, or for restTries. It calls settle whenever they moved.
func Rest(ctx context.Context, every time.Duration, settle func() error, read func() (Reading, error)) (
	Reading, error) {
	var last Reading
	for quiet, n := 0, 0; quiet < restReadings && n < restTries; n++ {
		if quiet == 0 {
			if err := settle(); err != nil {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(every):
		}
		now, err := read()
		if err != nil {
			return nil, err
		}
		quiet++
		for row, v := range now {
			if was, ok := last[row]; !ok || math.Abs(v-was) >= restWithin {
				quiet = 0
			}
		}
		last = now
	}
	return last, nil
}
