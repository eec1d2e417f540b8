//go:build linux

package run

import (
	"os"
	"path/filepath"
	"testing"
)

// The page cache is the machine's: what another process does may bring a page back, so that the file is this test's
// alone.
func TestFilesAreDroppedFromMemoryAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, make([]byte, 1<<20+1), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := evict(path); err != nil {
			t.Fatal(err)
		}
		if in, all, err := resident(path); err != nil || in != 0 || all != 257 {
			t.Errorf("%d of %d pages lie in memory, %v", in, all, err)
		}
		if err := proven(path, true); err == nil {
			t.Error("a file that was dropped is called warm")
		}
		if err := readWhole(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if err := proven(path, true); err != nil {
			t.Error(err)
		}
		if err := proven(path, false); err == nil {
			t.Error("a file that was read is called cold")
		}
	}
}
