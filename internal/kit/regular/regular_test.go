package regular_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/regular"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	check.Err(t, os.WriteFile(path, make([]byte, 2<<20), 0o600))
	if text, err := regular.Read(path, 2<<20); err != nil || len(text) != 2<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := regular.Read(path, 1<<20); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("one that is too large: %v", err)
	}
	for _, other := range []string{dir, os.DevNull} {
		if _, err := regular.Read(other, 1<<20); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", other, err)
		}
	}
	if _, err := regular.Read(path+"x", 1); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), path) {
		t.Errorf("none: %v", err)
	}
}
