package transformersjs_test

import (
	"encoding/json"
	"testing"

	"llmparity/assets/transformersjs"
	"llmparity/internal/kit/check"
)

func TestVersionEqualsPackageJSON(t *testing.T) {
	var npm struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	check.Err(t, json.Unmarshal(check.Read(t, "../package.json"), &npm))
	if got := npm.Dependencies["@huggingface/transformers"]; got != transformersjs.Version {
		t.Errorf("package.json requires transformers.js %q instead of %q", got, transformersjs.Version)
	}
}

func TestFilesExist(t *testing.T) {
	if _, err := transformersjs.Files(); err != nil {
		t.Error(err)
	}
}
