package pagecache

import (
	"os"
	"path/filepath"
	"testing"

	"llmparity/internal/kit/check"
)

// Other processes may bring pages back, so the file belongs to this test only.
func TestEvictAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	check.Err(t, os.WriteFile(path, make([]byte, 1<<20+1), 0o644))
	for range 2 {
		check.Err(t, Evict(path))
		if in, all, err := resident(path); err != nil || in != 0 || all != 257 {
			t.Errorf("%d of %d pages in memory, %v", in, all, err)
		}
		if err := proven(path, true); err == nil {
			t.Error("an evicted file passes as warm")
		}
		check.Err(t, Load(t.Context(), path))
		if err := proven(path, false); err == nil {
			t.Error("a read file passes as cold")
		}
	}
}
