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
	if id := BuildID("/proc/self/exe"); len(id) != 40 { // as Go's linker makes it
		t.Errorf("this program's number is %q", id)
	}
	for _, path := range []string{text, text + "-none"} {
		if id := BuildID(path); id != "" {
			t.Errorf("%s has the build's number %q", path, id)
		}
	}
}
