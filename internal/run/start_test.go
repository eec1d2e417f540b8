//go:build linux

package run

import (
	"os"
	"path/filepath"
	"testing"
)

// Other processes may bring pages back, so the file belongs to this test only.
func TestColdAndWarmFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, make([]byte, 1<<20+1), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := evict(path); err != nil {
			t.Fatal(err)
		}
		if in, all, err := resident(path); err != nil || in != 0 || all != 257 {
			t.Errorf("%d of %d pages in memory, %v", in, all, err)
		}
		if err := proven(path, true); err == nil {
			t.Error("an evicted file passes as warm")
		}
		if err := readWhole(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if err := proven(path, true); err != nil {
			t.Error(err)
		}
		if err := proven(path, false); err == nil {
			t.Error("a read file passes as cold")
		}
	}
}
