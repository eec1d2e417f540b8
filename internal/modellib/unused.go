package modellib

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"llmparity/internal/whole"
)

const (
	// unused is how long a library stays in the cache without being used. Each version of the compiler leaves a set.
	unused = 90 * 24 * time.Hour
	// noted is how often a use is recorded.
	noted = 24 * time.Hour
)

// use records the use of a library, so that it is not swept.
func use(ctx context.Context, path string) {
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < noted {
		return
	}
	unlock, err := lock(ctx, filepath.Dir(path))
	if err != nil { // a read-only cache is not swept either
		return
	}
	defer unlock()
	now := time.Now()
	_ = os.Chtimes(path, now, now) // on failure, it may be compiled again later
}

// sweep removes libraries that have not been used for long.
func sweep(ctx context.Context, dir string) {
	unlock, err := lock(ctx, dir)
	if err != nil {
		return
	}
	defer unlock()
	// The compiler's own copies go first. They are older, so nobody finds one that disappears while being read.
	key := strings.Repeat("[0-9a-f]", 16)
	for _, pattern := range []string{"library-" + key + ".wasm", key + ".wasm"} {
		names, _ := fs.Glob(os.DirFS(dir), pattern) // unreadable files stay
		for _, name := range names {
			path := filepath.Join(dir, name)
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() &&
				time.Since(info.ModTime()) > unused {
				_ = os.Remove(path)
			}
		}
	}
}

func lock(ctx context.Context, dir string) (unlock func(), err error) {
	return whole.Lock(ctx, filepath.Join(dir, ".lock"), func() {})
}
