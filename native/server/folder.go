package server

import (
	"context"
	"slices"

	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// converts reports whether a model becomes a Hugging Face folder: a GGUF, for a server that runs none.
func (e *Engine) converts(m models.Model) bool {
	t := e.template()
	return t != nil && m.Path != "" && (m.Format == models.GGUF || m.Format == "") && !slices.Contains(t.Formats,
		models.GGUF) &&
		slices.Contains(t.Formats, models.HuggingFace)
}

// Prepare writes the folder of a GGUF into the cache, once.
func (e *Engine) Prepare(ctx context.Context, m models.Model, say func(string)) error {
	if !e.converts(m) {
		return nil
	}
	_, lock, err := models.Folder(ctx, m, say)
	if lock != nil {
		_ = lock.Close() // a launch takes its own
	}
	return err
}

// folder returns the model as the server loads it, and how its weights compare with those of the file. release lets the
// folder be removed from the cache.
func (e *Engine) folder(ctx context.Context, m models.Model) (as models.Model, weights record.Sameness,
	release func(), err error) {
	if !e.converts(m) {
		return m, "", func() {}, nil
	}
	if err := m.Same(); err != nil {
		return m, "", nil, err
	}
	dir, lock, err := models.Folder(ctx, m, func(string) {})
	if err != nil {
		return m, "", nil, err
	}
	m.Path, m.Parts, m.Was, m.Format = dir, nil, nil, models.HuggingFace
	return m, models.FolderWeights(dir), func() {
		if lock != nil {
			_ = lock.Close() // it is a lock only
		}
	}, nil
}

// Loaded describes the model as the server holds it.
func (e *Engine) Loaded(m models.Model) engine.Loaded {
	held := engine.Loaded{Path: m.Path}
	if e.config.kind == VLLMName {
		held.As, held.DType = VLLMMemory, computes(e.settings.DType)
	}
	return held
}
