package browser

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatPageAndBrowserAreKnownBy(t *testing.T) {
	one, err := PageSHA256()
	other, err2 := PageSHA256()
	if err != nil || err2 != nil || len(one) != 64 || one != other {
		t.Errorf("the page: %q and %q, %v %v", one, other, err, err2)
	}
	text := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if id := BuildID(text); id != "" {
		t.Errorf("a script has the build's number %q", id)
	}
	if id := BuildID(text + "-none"); id != "" {
		t.Errorf("what is not there has the build's number %q", id)
	}
}
