package wllama_test

import (
	"encoding/json"
	"testing"

	"llmparity/assets/wllama"
	"llmparity/internal/kit/check"
)

func TestVersionEqualsPackageJSON(t *testing.T) {
	var npm struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	check.Err(t, json.Unmarshal(check.Read(t, "../package.json"), &npm))
	if got := npm.Dependencies["@wllama/wllama"]; got != wllama.Version {
		t.Errorf("package.json requires wllama %q instead of %q", got, wllama.Version)
	}
}

func TestFilesExist(t *testing.T) {
	if _, err := wllama.Files(); err != nil {
		t.Error(err)
	}
}
