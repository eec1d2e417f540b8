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
	// unused is how long a library may lie in the cache without being used: each version of the compiler leaves a set
	// of them.
	unused = 90 * 24 * time.Hour
	// noted is how long a use is not noted again.
	noted = 24 * time.Hour
)

// use notes that a library, if it is there, is used. It is not removed by who sweeps afterwards.
func use(ctx context.Context, path string) {
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < noted {
		return
	}
	unlock, err := lock(ctx, filepath.Dir(path))
	if err != nil { // a cache that can't be written to isn't swept either
		return
	}
	defer unlock()
	now := time.Now()
	_ = os.Chtimes(path, now, now) // else it is compiled again one day
}

// sweep removes the libraries that have not been used for long.
func sweep(ctx context.Context, dir string) {
	unlock, err := lock(ctx, dir)
	if err != nil {
		return
	}
	defer unlock()
	// The compiler's own copies first, which are older: whoever misses a library doesn't find one that goes while he
	// reads it.
	key := strings.Repeat("[0-9a-f]", 16)
	for _, pattern := range []string{"library-" + key + ".wasm", key + ".wasm"} {
		names, _ := fs.Glob(os.DirFS(dir), pattern) // what can't be read stays
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
