package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Profiles selects files of an engine's own profiling tools. They cost time and memory, so launches that have them are
// marked.
type Profiles struct {
	Kinds  []engine.Profile // empty: no profiling
	Phases []record.Phase
}

// profilesFolder is the folder for profiles in the run folder.
const profilesFolder = "profiles"

// markProfiled warns that the attempt is profiled.
func (a *attempt) markProfiled() {
	kinds := a.Profiles.Kinds
	if len(kinds) == 0 {
		return
	}
	if _, ok := a.live.session.(engine.Profiler); !ok {
		a.rec.Warn(record.Warning{Code: "not-profiled", Text: "the engine does not support profiling"})
		return
	}
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	a.rec.Warn(record.Warnf("profiled", "profiled (%s): times and memory are not comparable",
		strings.Join(names, ", ")))
}

// profile starts a phase's profiles; finish ends them. Errors are warnings.
func (a *attempt) profile(ctx context.Context, p record.Phase) (finish func()) {
	profiler, ok := a.live.session.(engine.Profiler)
	if !ok || len(a.Profiles.Kinds) == 0 || !slices.Contains(a.Profiles.Phases, p) {
		return func() {}
	}
	failed := func(err error) {
		if err != nil && ctx.Err() == nil {
			a.rec.Warn(record.Warnf("profile", "%s: profile missing: %v", p, err))
		}
	}
	end, err := profiler.Profile(ctx, a.Profiles.Kinds)
	failed(err)
	return func() {
		dir := filepath.Join(a.w.Dir(), profilesFolder)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			failed(err) // the profiler must be ended anyway
		}
		failed(end(ctx, filepath.Join(dir, fmt.Sprintf("%d-%s", a.rec.ID(), p))))
	}
}
