package bundle_test

import (
	"encoding/json"
	"testing"

	"llmparity/assets/bundle"
	"llmparity/internal/kit/check"
)

func TestVersionEqualsPackageJSON(t *testing.T) {
	text := check.Read(t, "../package.json")
	var npm struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	check.Err(t, json.Unmarshal(text, &npm))
	if got := npm.Dependencies["@mlc-ai/web-llm"]; got != bundle.Version {
		t.Errorf("package.json requires WebLLM %q instead of %q", got, bundle.Version)
	}
}

func TestBundleExists(t *testing.T) {
	if _, err := bundle.Script(); err != nil {
		t.Error(err)
	}
}
