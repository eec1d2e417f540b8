package catalogue

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"sync"
)

// shapesJSON has the sizes of the models that MLC's packages were made from, as MLC's presets and the models' authors
// publish them. Models with layers of several kinds are not in it.
//
//go:embed shapes.json
var shapesJSON []byte

type shape struct {
	IDs    *regexp.Regexp  `json:"ids"`
	Config json.RawMessage `json:"config"`
}

var shapes = sync.OnceValue(func() (all []shape) {
	if err := json.Unmarshal(shapesJSON, &all); err != nil {
		panic(err) // a test reads it
	}
	return all
})

// Shape returns the config.json of the model that the package was made from; nil: unknown.
func (e Entry) Shape() []byte {
	for _, s := range shapes() {
		if s.IDs.MatchString(e.ID) {
			return s.Config
		}
	}
	return nil
}
