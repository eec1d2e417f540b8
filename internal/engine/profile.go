package engine

import "context"

// Profile is a kind of file by which an engine's maker looks into it.
type Profile string

// The kinds. A heap snapshot tells of a moment, the end of a phase; the others tell of the phase.
const (
	HeapSnapshot    Profile = "heap-snapshot"
	SamplingProfile Profile = "sampling-profile" // which code allocated what is alive
	Trace           Profile = "trace"
	CPUProfile      Profile = "cpu-profile"
)

// Profiler is a session that can be profiled. It costs time and memory: figures of a launch that is profiled compare
// with none.
type Profiler interface {
	// Profile begins profiles of some kinds. The function that it returns ends them and writes their files, whose names
	// begin with prefix; it must be called, once, and is never nil. An error of either is no reason to give a launch
	// up.
	Profile(ctx context.Context, kinds []Profile) (finish func(ctx context.Context, prefix string) error, err error)
}
