package models

import (
	"os"

	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Model is what an engine is asked to load.
type Model struct {
	record.Model
	Path string // the GGUF file; of a split one: its first part
	// Parts lists the files of a split GGUF, the first included; nil: it has one file.
	Parts []string
	// Unsupported says why llmparity cannot compute with it; nil: it can. Engines that are separate programs may know
	// more architectures.
	Unsupported error
	// Unreadable says why llmparity cannot read the weights; nil: it can. Separate programs may read more types.
	Unreadable error
	Template   bool // it has a chat template
	// Was describes the files when their hash was taken, in order; nil: unknown.
	Was []os.FileInfo
	// Forms are what engines run, by their names in plans, if each has a form of its own.
	Forms map[string]Model
	// GGUF is a package as a GGUF, for engines that do not run packages; nil: there is none.
	GGUF *Model
	// From is the package that a GGUF is converted from; Path is empty before that.
	From string
	// Policy is added to what engines report of their settings.
	Policy map[string]string
	// Weights says how the weights of a package and of its GGUF compare; empty: it has none.
	Weights record.Sameness
	// Lock keeps the files in the cache while this process may use them.
	Lock *os.File
}

// Files lists the files of a GGUF, or the folder of a package.
func (m Model) Files() []string {
	if m.Parts != nil {
		return m.Parts
	}
	return []string{m.Path}
}

// Same returns an error if a file was replaced or changed since its hash was taken, judging by inode, size and time.
func (m Model) Same() error {
	for i, was := range m.Was {
		path := m.Files()[i]
		now, err := os.Stat(path)
		if err != nil || !os.SameFile(now, was) || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
			return fault.New(fault.BadModel, "leave it unchanged during a run, and try again",
				"model %s was replaced or changed since the run began", path)
		}
	}
	return nil
}
