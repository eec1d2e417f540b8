package deepen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/bench/once"
	"llmparity/internal/depth"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// scripts generates once more while a browser samples the JavaScript of its page and workers.
func (f *Found) scripts(ctx context.Context, s *once.Session, r engine.Request, prefix string) error {
	finish, err := s.Session.(engine.Profiler).Profile(ctx, []engine.Profile{engine.CPUProfile})
	_, failed := s.Generate(ctx, r, func(record.Token) {})
	if err := errors.Join(failed, err, finish(ctx, prefix)); err != nil {
		return err
	}
	files, err := filepath.Glob(prefix + "*.cpuprofile")
	if err != nil || len(files) == 0 {
		return errors.Join(err, errors.New("the browser wrote no CPU profile"))
	}
	slices.Sort(files)
	for _, path := range files {
		if err := f.script(path, strings.TrimSuffix(filepath.Base(path), ".cpuprofile")); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	f.Files = append(f.Files, files...)
	return nil
}

// script adds the stacks of a thread, below its name.
func (f *Found) script(path, thread string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	s, err := depth.ReadCPUProfile(in)
	if err != nil {
		return err
	}
	if f.Stacks == nil {
		f.Stacks = depth.NewStacks(s.Every)
		f.Stacks.Generations = 1
	}
	f.Stacks.Samples += s.Samples
	for _, stack := range slices.Sorted(maps.Keys(s.Seen)) {
		f.Stacks.Add([]string{thread, stack}, s.Seen[stack])
	}
	return nil
}
