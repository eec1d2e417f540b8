package engine

import "context"

// Settled is an engine that knows, before it is opened, the settings of a run that affect memory. Names are those of
// EngineInfo.Policy, which later records the real values. What is not known yet is left out. A Preparer is asked after
// Prepare.
type Settled interface {
	Settings(Model) map[string]string
}

// Fetcher is an engine that downloads a part once.
type Fetcher interface {
	// Lacks says what must be downloaded; empty: nothing.
	Lacks() string
	// Fetch downloads it. Whatever needs the part calls it, too; say reports slow steps.
	Fetch(ctx context.Context, say func(string)) error
}
