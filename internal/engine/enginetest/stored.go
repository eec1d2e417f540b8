package enginetest

import (
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/record/ran"
)

// Stored runs a case in an engine that finds some of its model in the browser's store, and returns what is stored then.
// What was asked for must be there.
func Stored(t *testing.T, e engine.Engine, c Case) (engine.Session, ran.Store) {
	t.Helper()
	probe := &Probe{}
	s, err := engine.OpenFor(limit(t), e, c.Model, probe)
	check.Err(t, err)
	t.Cleanup(func() { check.Also(t, s.Close()) })
	Load(t, s, c.Model)
	g, err := Generate(limit(t), s, engine.Request{Prompt: c.Prompt, MaxTokens: len(c.Expected), IgnoreEOS: true})
	check.Err(t, err)
	g.Caps = e.Caps()
	report(t, c.Faults(g))
	var found *ran.Store
	for _, e := range probe.Events() {
		if e.Store != nil {
			found = e.Store
		}
		for _, r := range e.Ran {
			if r.What == ran.Storage && r.Missed {
				t.Errorf("storage: %+v", r)
			}
		}
	}
	if found == nil {
		t.Fatal("nothing is reported of the browser's store")
	}
	return s, *found
}
