package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/whole"
)

// fromDisk evicts the model's files from the page cache, or reads them into it, as the cell requests. It warns if that
// fails.
func (a *attempt) fromDisk(ctx context.Context) {
	start := a.cell.Start
	if start == "" {
		return
	}
	say := func(why error) {
		a.rec.Warn(record.Warnf("not-"+start, "no %s start: %v", start, why))
	}
	files, err := filesOf(a.setup, a.cell.engine)
	if err != nil {
		say(err)
		return
	}
	for _, path := range files {
		if start == record.ColdStart {
			err = evict(path)
		} else {
			err = readWhole(ctx, path)
		}
		if err == nil {
			err = proven(path, start == record.WarmStart)
		}
		if err != nil {
			say(err)
			return
		}
	}
}

// filesOf lists the files that an engine reads the model from.
func filesOf(s *current, e engine.Engine) ([]string, error) {
	paths := []string{s.Model.Path}
	if s.Files != nil {
		paths = s.Files(e)
	}
	var out []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		err := filepath.Walk(path, func(path string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().IsRegular() && info.Size() > 0 {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the model's files are unknown")
	}
	return out, nil
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

// readWhole reads a file into memory.
func readWhole(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, _ = io.Copy(whole.Until(ctx, io.Discard), f) // the caller checks the result
	return ctx.Err()
}
