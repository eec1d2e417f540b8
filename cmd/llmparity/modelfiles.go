package main

import (
	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/native/ollama"
)

// modelFiles tells what an engine reads a model from: WebLLM a package and its library, which its page's server hands
// out, others the file itself. Of Ollama's store nobody here knows which file it is; what can't be known is warned of
// in the record.
func modelFiles(m engine.Model, context int) func(engine.Engine) []string {
	m.Context = context
	return func(e engine.Engine) []string {
		if _, ok := e.(*ollama.Ollama); ok {
			return nil
		}
		w, ok := e.(*browser.WebLLM)
		if !ok {
			return []string{m.Path}
		}
		p, ok := w.Prepared(m)
		if !ok {
			return nil
		}
		return []string{p.Dir, p.Library.Path}
	}
}
