package main

import (
	"slices"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
)

// referenceOf names the engine, as records do, whose text engines are to score: the plan's, else the first that runs
// outside the browser, else the first. It must tell token ids: a text without them can't be forced on anybody. Engines
// of one's own say whether they do when they are checked, and not before.
func (f *runFlags) referenceOf(p plan.Plan) string {
	if p.Reference != "" {
		return f.named(p.Reference).Name()
	}
	able := slices.DeleteFunc(f.build(p.Engines), func(e engine.Engine) bool { return !e.Caps().TokenIDs })
	if len(able) == 0 {
		return f.named(p.Engines[0]).Name()
	}
	if native := slices.IndexFunc(able, func(e engine.Engine) bool { return e.Name() != browser.Name }); native >= 0 {
		return able[native].Name()
	}
	return able[0].Name()
}

// referenceFault refuses a reference that was asked for and tells no ids.
func (f *runFlags) referenceFault(p plan.Plan) error {
	if p.Reference == "" || f.named(p.Reference).Caps().TokenIDs {
		return nil
	}
	return fault.New(fault.Usage, "name an engine that does, such as llamacpp or webllm",
		"--reference %s: it tells no token ids, and so its text "+
			"can't be put to other engines", p.Reference)
}
