package record

import (
	"path/filepath"
	"slices"

	"llmparity/internal/kit/whole"
)

// Build identifies an engine's program: for those who read run.json alone. The journal has all that it reported.
type Build struct {
	Engine  string `json:"engine"`            // name of the engine, as in the plan
	Version string `json:"version"`           // as the engine reports it
	Commit  string `json:"commit,omitempty"`  // commit of its source; absent: its build does not state one
	Origin  string `json:"origin,omitempty"`  // where its code is from: "built in", npm, a file …
	SHA256  string `json:"sha256,omitempty"`  // SHA-256 of the program
	Library string `json:"library,omitempty"` // SHA-256 of the model library; absent: it has none
}

// of describes what ran in a cell by the last report of it: an engine knows its library once it has a model.
func (b *Build) of(cell Cell, e *EngineInfo) {
	*b = Build{Engine: cell.Engine, Version: e.Version, Commit: e.Commit, Origin: e.Origin, SHA256: e.SHA256}
	if e.Library != nil {
		b.Library = e.Library.SHA256
	}
}

// ran keeps a build, once.
func (w *Writer) ran(b Build) {
	if b.Version != "" && !slices.Contains(w.meta.Engines, b) {
		w.meta.Engines = append(w.meta.Engines, b)
	}
}

// builds writes run.json again, with the builds that ran.
func (w *Writer) builds() {
	if len(w.meta.Engines) > 0 && w.err == nil {
		w.fail(whole.JSON(filepath.Join(w.dir, metaFile), w.meta))
	}
}
