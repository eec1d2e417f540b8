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

// Profiles says which files of an engine's own tools are written, and of which phases. They take time and memory,
// within the phase and after it, so that figures of a launch that has them are marked.
type Profiles struct {
	Kinds  []engine.Profile // none: nothing is profiled
	Phases []record.Phase
}

// profilesFolder is that of the files, in a run's folder.
const profilesFolder = "profiles"

// markProfiled says in the record what the profiles do to the figures.
func (a *attempt) markProfiled() {
	kinds := a.Profiles.Kinds
	if len(kinds) == 0 {
		return
	}
	if _, ok := a.live.session.(engine.Profiler); !ok {
		a.rec.Warn(record.Warning{Code: "not-profiled", Text: "the engine can't be profiled: there are no files of it"})
		return
	}
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	a.rec.Warn(record.Warning{Code: "profiled", Text: fmt.Sprintf("profiled (%s): times and memory are not comparable",
		strings.Join(names, ", "))})
}

// profile begins a phase's profiles; the function returned ends them. What goes wrong with them is a warning.
func (a *attempt) profile(ctx context.Context, p record.Phase) (finish func()) {
	profiler, ok := a.live.session.(engine.Profiler)
	if !ok || len(a.Profiles.Kinds) == 0 || !slices.Contains(a.Profiles.Phases, p) {
		return func() {}
	}
	failed := func(err error) {
		if err != nil && ctx.Err() == nil {
			a.rec.Warn(record.Warning{Code: "profile",
				Text: fmt.Sprintf("%s: not every profile could be taken: %v", p, err)})
		}
	}
	end, err := profiler.Profile(ctx, a.Profiles.Kinds)
	failed(err)
	return func() {
		dir := filepath.Join(a.w.Dir(), profilesFolder)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			failed(err) // what was begun is ended all the same
		}
		failed(end(ctx, filepath.Join(dir, fmt.Sprintf("%d-%s", a.rec.ID(), p))))
	}
}
