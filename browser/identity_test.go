package browser

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBuildID(t *testing.T) {
	text := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, text + "-none"} {
		if id := BuildID(path); id != "" {
			t.Errorf("%s has the build's number %q", path, id)
		}
	}
}
