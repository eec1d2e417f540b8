package browser

import (
	"context"
	"io/fs"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Part is the name of the browser among the parts that engines need: all of them need the same one.
const Part = "browser"

// Module looks for an engine's code in this program.
func Module(name, version string, files func() (fs.FS, error)) engine.Search {
	return engine.Search{Name: name, Find: func(context.Context) engine.Part {
		_, err := files()
		return engine.Part{Version: version, Err: err}
	}}
}

// Found says what an engine can run that needs its module and a browser, without a GPU.
func Found(name, module, can string) func(engine.Here) engine.Finding {
	return func(here engine.Here) engine.Finding {
		code, chrome := here.Parts[module], here.Parts[Part]
		if code.Err != nil || chrome.Err != nil || chrome.Path == "" {
			return engine.Finding{Name: name, Version: code.Version, Path: chrome.Path,
				Can: "nothing yet; see what is missing"}
		}
		return engine.Finding{Name: name, Version: code.Version, Path: chrome.Path, Ready: true,
			Device: string(record.CPU), Can: can}
	}
}
