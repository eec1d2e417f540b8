package page

import "llmparity/internal/fault"

// Catalogue gives WebLLM's list of models, drawn out of the bundle at set-up, or a fault that says how to get it. What
// is in it, internal/catalogue reads.
func Catalogue() ([]byte, error) {
	b, err := files.ReadFile("dist/catalogue.json")
	if err != nil {
		return nil, fault.New(fault.NoBundle, "run make setup and build again",
			"the list of models of WebLLM %s is not part of this build", WebLLM)
	}
	return b, nil
}
