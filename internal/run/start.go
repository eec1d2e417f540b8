package run

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/whole"
)

// fromDisk has the model's files lie in memory or not before a launch, as the cell asks. Where that can't be had, the
// record says so.
func (a *attempt) fromDisk(ctx context.Context) {
	start := a.cell.Start
	if start == "" {
		return
	}
	say := func(why error) {
		a.rec.Warn(record.Warning{Code: "not-" + start, Text: fmt.Sprintf("a %s start was asked for: %v", start, why)})
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
			say(err) // of the first: one is enough to spoil it
			return
		}
	}
}

// filesOf lists what an engine reads a model from.
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
		return nil, fmt.Errorf("no file of its model is known here")
	}
	return out, nil
}

// proven tells whether all of a file lies in memory, or nothing of it.
func proven(path string, whole bool) error {
	in, all, err := resident(path)
	switch {
	case err != nil:
		return fmt.Errorf("what of %s lies in memory can't be told: %w", path, err)
	case whole && in < all:
		return fmt.Errorf("%d of %d pages of %s don't lie in memory, although it was just read", all-in, all, path)
	case !whole && in > 0:
		return fmt.Errorf("%d of %d pages of %s still lie in memory: somebody uses them, or its file system has no disk", in, all, path)
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
	_, _ = io.Copy(whole.Until(ctx, io.Discard), f) // its length is proven after it
	return ctx.Err()
}
