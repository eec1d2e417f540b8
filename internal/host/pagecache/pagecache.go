// Package pagecache evicts files from the page cache or reads them into it, for cold and warm starts, and checks that
// it succeeded. Other systems than Linux have no way to do that.
package pagecache

import (
	"context"
	"fmt"
	"io"
	"os"

	"llmparity/internal/kit/whole"
)

// Evict evicts a file. It returns an error if pages remain in memory.
func Evict(path string) error {
	if err := evict(path); err != nil {
		return err
	}
	return proven(path, false)
}

// Load reads a file into memory. It returns an error if pages are missing afterwards.
func Load(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, _ = io.Copy(whole.Until(ctx, io.Discard), f) // proven checks the result
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return proven(path, true)
}

// proven checks that all pages of a file are in memory, or none.
func proven(path string, whole bool) error {
	in, all, err := resident(path)
	switch {
	case err != nil:
		return fmt.Errorf("can't read the page cache of %s: %w", path, err)
	case whole && in < all:
		return fmt.Errorf("%d of %d pages of %s are not in memory after reading it", all-in, all, path)
	case !whole && in > 0:
		return fmt.Errorf("%d of %d pages of %s are still in memory: in use, or not on a disk", in, all, path)
	}
	return nil
}
