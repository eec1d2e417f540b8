package engine

import "context"

// Settled is an engine that can say, before it is opened, with which settings it will run a model, as far as they bear
// on memory. They have the names that EngineInfo.Policy has, under which the record tells later what they really were.
// What it can't know yet is left out. An engine that prepares is asked when it has.
type Settled interface {
	Settings(Model) map[string]string
}

// Fetcher is an engine that needs a part from elsewhere, which it fetches once.
type Fetcher interface {
	// Lacks says what must be fetched; empty: nothing.
	Lacks() string
	// Fetch fetches it. It is called by what needs the part, too; say is told about what takes noticeable time.
	Fetch(ctx context.Context, say func(string)) error
}
