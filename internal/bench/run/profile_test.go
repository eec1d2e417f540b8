package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// profiled is a scripted engine that can be profiled; fail is the error when a profile ends.
type profiled struct {
	scripted
	fail error
}

func (e *profiled) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	s, err := e.scripted.Open(ctx, p)
	return &profiledSession{s.(*scriptedSession), e}, err
}

type profiledSession struct {
	*scriptedSession
	engine *profiled
}

func (s *profiledSession) Profile(_ context.Context, kinds []engine.Profile) (func(context.Context, string) error,
	error) {
	return func(_ context.Context, prefix string) error {
		for _, k := range kinds {
			if err := os.WriteFile(prefix+"."+string(k), nil, 0o600); err != nil {
				return err
			}
		}
		return s.engine.fail
	}, nil
}

func warned(r *record.Run, attempt int, code string) (n int) {
	for _, w := range r.Attempts[attempt].Warnings {
		if w.Code == code {
			n++
		}
	}
	return n
}

// An engine that can be profiled is, and one that fails to only warns, once for each phase.
func TestProfilesSelectedPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &profiled{scripted: scripted{name: "a"}, fail: errors.New("no such luck")}
		o := options(t, a, &scripted{name: "b"})
		o.Plan.Repetitions = 1
		o.Profiles = run.Profiles{Kinds: []engine.Profile{engine.CPUProfile, engine.HeapSnapshot},
			Phases: []record.Phase{record.Load, record.Measure}}
		r := whole(t, o)
		found, err := filepath.Glob(filepath.Join(o.Out, "latest", "profiles", "*"))
		check.Err(t, err)
		for i, f := range found {
			found[i] = filepath.Base(f)
		}
		// The engine of attempts 2 and 4 can't be profiled.
		want := []string{"1-load.cpu-profile", "1-load.heap-snapshot", "1-measure.cpu-profile",
			"1-measure.heap-snapshot",
			"3-load.cpu-profile", "3-load.heap-snapshot", "3-measure.cpu-profile", "3-measure.heap-snapshot"}
		if !slices.Equal(found, want) {
			t.Errorf("files %q, want %q", found, want)
		}
		for i := range r.Attempts {
			first := i%2 == 0
			if marked, reported := warned(r, i, "profiled") == 1, warned(r, i, "not-profiled") == 1; marked != first ||
				reported == first || (warned(r, i, "profile") == 2) != first {
				t.Errorf("attempt %d: warnings %+v", i+1, r.Attempts[i].Warnings)
			}
		}
	})
}
