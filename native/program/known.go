package program

import (
	"fmt"
	"os"
	"sync"

	"llmparity/internal/cache"
)

// Known keeps what was found out about a program for as long as its file is the same: hashing takes a while.
type Known[T any] struct {
	mu   sync.Mutex
	path string
	file os.FileInfo
	what T
}

// Of gives what is known of the program at a path; look finds it out, of a file with such a sum. A script's
// interpreter, and what a program loads, are not in the sum.
func (k *Known[T]) Of(path string, look func(sha256 string) (T, error)) (T, error) {
	var none T
	now, err := os.Stat(path)
	if err != nil {
		return none, fmt.Errorf("looking at a program: %w", err)
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
