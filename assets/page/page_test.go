package page_test

import (
	"encoding/json"
	"testing"

	"llmparity/assets/page"
	"llmparity/internal/kit/check"
)

func TestVersionEqualsPackageJSON(t *testing.T) {
	text := check.Read(t, "../package.json")
	var npm struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	check.Err(t, json.Unmarshal(text, &npm))
	if got := npm.Dependencies["@mlc-ai/web-llm"]; got != page.WebLLM {
		t.Errorf("package.json requires WebLLM %q instead of %q", got, page.WebLLM)
	}
}

func TestBundleExists(t *testing.T) {
	if _, err := page.Bundle(); err != nil {
		t.Error(err)
	}
}
