package program

import (
	"fmt"
	"os"
	"sync"

	"llmparity/internal/cache"
)

// Known caches what was found out about a program until its file changes, because hashing takes time.
type Known[T any] struct {
	mu   sync.Mutex
	path string
	file os.FileInfo
	what T
}

// Of returns what is known about a program; look finds it out, given the hash. The hash does not cover a script's
// interpreter or libraries.
func (k *Known[T]) Of(path string, look func(sha256 string) (T, error)) (T, error) {
	var none T
	now, err := os.Stat(path)
	if err != nil {
		return none, fmt.Errorf("checking a program: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.path == path && os.SameFile(k.file, now) && k.file.Size() == now.Size() &&
		k.file.ModTime().Equal(now.ModTime()) {
		return k.what, nil
	}
	sum, err := cache.HashFile(path)
	if err != nil {
		return none, err
	}
	what, err := look(sum)
	if err != nil {
		return none, err
	}
	k.path, k.file, k.what = path, now, what
	return what, nil
}
