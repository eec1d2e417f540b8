package page

import "llmparity/internal/fault"

// Catalogue returns WebLLM's list of models, which make setup extracts from the bundle. internal/catalogue reads it.
func Catalogue() ([]byte, error) {
	b, err := files.ReadFile("dist/catalogue.json")
	if err != nil {
		return nil, fault.New(fault.NoBundle, "run make setup and build again",
			"this build does not include the list of models of WebLLM %s", WebLLM)
	}
	return b, nil
}
