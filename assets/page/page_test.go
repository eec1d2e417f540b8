package page_test

import (
	"encoding/json"
	"os"
	"testing"

	"llmparity/assets/page"
)

func TestVersionEqualsPackageJSON(t *testing.T) {
	text, err := os.ReadFile("../package.json")
	if err != nil {
		t.Fatal(err)
	}
	var npm struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(text, &npm); err != nil {
		t.Fatal(err)
	}
	if got := npm.Dependencies["@mlc-ai/web-llm"]; got != page.WebLLM {
		t.Errorf("package.json requires WebLLM %q instead of %q", got, page.WebLLM)
	}
}

func TestBundleExists(t *testing.T) {
	if _, err := page.Bundle(); err != nil {
		t.Error(err)
	}
}
