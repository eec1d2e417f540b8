package page_test

import (
	"encoding/json"
	"os"
	"testing"

	"llmparity/assets/page"
)

func TestVersionIsThatOfPackageJSON(t *testing.T) {
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
		t.Errorf("package.json asks for WebLLM %q, the page is written for %q", got, page.WebLLM)
	}
}

func TestBundleIsThere(t *testing.T) {
	if _, err := page.Bundle(); err != nil {
		t.Error(err)
	}
}
