package modellib

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestUnusedLibrariesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-unused - time.Hour)
	for name, at := range map[string]time.Time{
		"0123456789abcdef.wasm": old, "library-0123456789abcdef.wasm": old, // gone
		// used again, and used not long ago
		"1123456789abcdef.wasm": old, "2123456789abcdef.wasm": time.Now().Add(-noted * 2),
		"mine.wasm": old, "runtime-0123456789abcdef.o": old, // no libraries of ours, or what all are linked with
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	use(t.Context(), filepath.Join(dir, "1123456789abcdef.wasm"))
	use(t.Context(), filepath.Join(dir, "3123456789abcdef.wasm")) // not there
	sweep(t.Context(), dir)
	var left []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{".lock", "1123456789abcdef.wasm", "2123456789abcdef.wasm", "mine.wasm",
		"runtime-0123456789abcdef.o"}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v (%v), want %v", left, err, want)
	}
}
