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

// Reading is what sources say at a moment, in MiB, by the ids of rows. What could not be read is not in it.
type Reading map[string]float64

// Add adds a value of a sample, in bytes, to the figure of somebody; nothing where the sample has none.
func (r Reading) Add(who, name string, s record.Sample) {
	for _, v := range s.Values {
		if v.Name == name {
			r[who+"/"+name] += v.Value / MiB
		}
	}
}

// Subject takes memory, and has sources.
type Subject interface {
	// Take takes memory of a kind; it is there when Take returns.
	Take(ctx context.Context, kind string, bytes int64) error
	GiveBack(ctx context.Context) error
	// Rest reads every source when the subject has come to rest.
	Rest(context.Context) (Reading, error)
	// Others lists who shares memory with the subject: while they come and go, figures move by themselves.
	Others() []int
}

// disturbed is how often a measurement is tried while others come and go.
const disturbed = 20

// Measure takes size bytes of every kind of a table, repeats times each, and judges what its rows made of it.
func Measure(ctx context.Context, t Table, s Subject, p Platform, size int64, repeats int) (
	Matrix, error) {
	moved := map[string]map[string][]float64{}
	for _, k := range t.Kinds {
		moved[k.ID] = map[string][]float64{}
		// Once for all that grows at the first time.
		if err := s.Take(ctx, k.ID, size); err != nil {
			return Matrix{}, fmt.Errorf("taking %d MiB of %s: %w", size/MiB, k.Name, err)
		}
		if err := s.GiveBack(ctx); err != nil {
			return Matrix{}, fmt.Errorf("giving back %s: %w", k.Name, err)
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

// once gives what each source moved by.
func once(ctx context.Context, s Subject, k Kind, size int64) (Reading, error) {
	for range disturbed {
		others := s.Others()
		before, err := s.Rest(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading before %s: %w", k.Name, err)
		}
		if err := s.Take(ctx, k.ID, size); err != nil {
			return nil, fmt.Errorf("taking %d MiB of %s: %w", size/MiB, k.Name, err)
		}
		after, err := s.Rest(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading after %s: %w", k.Name, err)
		}
		if err := s.GiveBack(ctx); err != nil {
			return nil, fmt.Errorf("giving back %s: %w", k.Name, err)
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
		"other processes of the same program come and go, which changes what memory is shared: %s could not be measured", k.Name)
}

// What it is to be at rest: so many readings in a row that differ by less than a little.
const (
	restReadings = 3
	restTries    = 40
	restWithin   = 0.25 // MiB
)

// Rest reads every so often until the readings stay as they are, or it has been tried often enough. settle is called
// whenever they moved.
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
