package truth

import (
	"math"
	"slices"
	"testing"
	"time"

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
	Take(t testing.TB, kind string, bytes int64)
	GiveBack(testing.TB)
	// Rest waits until the subject is at rest, and reads every source.
	Rest(testing.TB) Reading
	// Others lists other processes that share memory with the subject. If they change, figures are disturbed.
	Others() []int
}

// disturbed is how often to repeat a disturbed measurement.
const disturbed = 20

// Measure allocates size bytes of every kind of a table, repeats times each, and judges the changes of all figures.
func Measure(t testing.TB, table Table, s Subject, p Platform, size int64, repeats int) Matrix {
	t.Helper()
	moved := map[string]map[string][]float64{}
	for _, k := range table.Kinds {
		moved[k.ID] = map[string][]float64{}
		// Once without measuring, for what grows only the first time.
		s.Take(t, k.ID, size)
		s.GiveBack(t)
		for range repeats {
			for row, v := range once(t, s, k, size) {
				moved[k.ID][row] = append(moved[k.ID][row], v)
			}
		}
	}
	return table.matrix(p, float64(size)/MiB, moved)
}

// once returns the changes of all figures.
func once(t testing.TB, s Subject, k Kind, size int64) Reading {
	t.Helper()
	for range disturbed {
		others := s.Others()
		before := s.Rest(t)
		s.Take(t, k.ID, size)
		after := s.Rest(t)
		s.GiveBack(t)
		if !slices.Equal(others, s.Others()) {
			continue
		}
		by := Reading{}
		for row, v := range after {
			if was, ok := before[row]; ok {
				by[row] = v - was
			}
		}
		return by
	}
	t.Fatalf("can't measure %s: other processes of the same program start and end, which changes shared memory; "+
		"end them and try again", k.Name)
	return nil
}

// Rest means so many consecutive readings that differ by less than restWithin.
const (
	restReadings = 3
	restTries    = 40
	restWithin   = 0.25 // MiB
)

// Rest reads at intervals until the readings are stable, or for restTries. It calls settle whenever they moved.
func Rest(every time.Duration, settle func(), read func() Reading) (last Reading) {
	for quiet, n := 0, 0; quiet < restReadings && n < restTries; n++ {
		if quiet == 0 {
			settle()
		}
		time.Sleep(every)
		now := read()
		quiet++
		for row, v := range now {
			if was, ok := last[row]; !ok || math.Abs(v-was) >= restWithin {
				quiet = 0
			}
		}
		last = now
	}
	return last
}
