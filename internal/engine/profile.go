package engine

import "context"

// Profile is a kind of profile that an engine can write.
type Profile string

// Kinds of profiles. A heap snapshot is taken at the end of a phase; the others cover the phase.
const (
	HeapSnapshot    Profile = "heap-snapshot"
	SamplingProfile Profile = "sampling-profile" // which code allocated the live memory
	Trace           Profile = "trace"
	CPUProfile      Profile = "cpu-profile"
)

// Profiler is a session that can be profiled. Profiling costs time and memory: never compare figures of a profiled
// launch.
type Profiler interface {
	// Profile starts profiles. finish ends them and writes files whose names begin with prefix; it is never nil and
	// must be called once. An error of either is not a reason to abandon the launch.
	Profile(ctx context.Context, kinds []Profile) (finish func(ctx context.Context, prefix string) error, err error)
}
