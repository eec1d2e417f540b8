// Package program finds the programs that engines start, identifies them, and asks for their versions.
//
// It goes by names and places. Whether a program is what it seems to be is up to the engine to check.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/record"
	"llmparity/native/logs"
	"llmparity/native/place"
)

// Program is a program that an engine starts.
type Program struct {
	Names    []string // on PATH; the first is also that of our own build
	Build    string   // folder of our own build in the cache
	Flag     string   // with which a user names another one
	Variable string   // the same as an environment variable

	In *place.Place // where it runs; nil: on this machine

	Kind fault.Kind // of errors about it
	Do   string     // advice in errors about it
}

// Find searches for the program where the user named it, then on PATH by its first name, in the cache folder, and on
// PATH by its other names. If the user's choice cannot be run, that is an error: another program would be measured
// unnoticed.
func (p Program) Find(given, cache string) (string, error) {
	if p.In != nil {
		return p.inside(given, cache)
	}
	for _, named := range []struct{ path, by string }{{given, p.Flag}, {os.Getenv(p.Variable), p.Variable}} {
		if named.path == "" {
			continue
		}
		path, err := exec.LookPath(named.path)
		if err != nil {
			return "", p.Unfit("%s: %s cannot be run (%v)", named.by, named.path, errors.Unwrap(err))
		}
		return filepath.Abs(path)
	}
	if path, err := exec.LookPath(p.Names[0]); err == nil {
		return filepath.Abs(path)
	}
	if cache != "" {
		// Resolve the link, so that the record names the build.
		if path, err := filepath.EvalSymlinks(filepath.Join(cache, p.Build, p.Names[0])); err == nil {
			return path, nil
		}
	}
	for _, older := range p.Names[1:] {
		if path, err := exec.LookPath(older); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", p.Unfit("%s not found on PATH or in the cache", p.Names[0])
}

// inside searches in the container: where the user named it, else on the container's PATH, else for the program of this
// machine if the container has its folder.
func (p Program) inside(given, cache string) (string, error) {
	ctx := context.Background()
	names := p.Names
	if given != "" {
		names = []string{given}
	}
	if path, err := p.In.Which(ctx, names...); err != nil || path != "" {
		return path, err
	}
	here := p
	here.In = nil
	if path, err := here.Find(given, cache); err == nil {
		if path, err = p.In.Path(ctx, path); err == nil {
			return path, nil
		}
	}
	return "", engine.SetUp(fault.New(fault.NoContainer, "use an image that has it, or mount its folder into the container",
		"%s is not in container %s", names[0], p.In))
}

// Unfit is the error for a program that is missing or unusable.
func (p Program) Unfit(format string, args ...any) *engine.Failure {
	return &engine.Failure{Class: record.SetUp, Err: fault.New(p.Kind, p.Do, format, args...)}
}

// Ask runs the program with one argument and returns what it prints. That also shows whether it runs here. env is its
// whole environment; in a container, what it has beside the container's.
func (p Program) Ask(ctx context.Context, path, question string, env []string) ([]string, error) {
	if p.In != nil {
		said, err := p.In.Says(ctx, slices.Concat([]string{"env"}, env, []string{path, question})...)
		if err != nil {
			return nil, p.Unfit("%s %s failed in container %s: %v", path, question, p.In, err)
		}
		return strings.Split(said, "\n"), nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.Command(path, question)
	cmd.Env = env
	tail := &child.Tail{Max: 256 << 10}
	cmd.Stdout, cmd.Stderr = tail, tail
	asked, err := child.Start(ctx, cmd)
	if err != nil {
		return nil, p.Unfit("%s does not start: %v", path, err)
	}
	<-asked.Done()
	if ctx.Err() != nil {
		return nil, fault.Wrap(p.Kind, ctx.Err(), "", "%s %s", path, question)
	}
	lines := tail.Lines(1 << 16)
	if asked.Err() != nil {
		return nil, p.Unfit("%s %s failed (%s): %s", path, question, asked.Exit(), logs.LastWords(lines))
	}
	return lines, nil
}

// Version asks the program for its version, which line finds in the answer. Another program gives another answer.
func (p Program) Version(ctx context.Context, path string, env []string, line *regexp.Regexp) (string, error) {
	lines, err := p.Ask(ctx, path, "--version", env)
	if err != nil {
		return "", err
	}
	m := line.FindStringSubmatch(strings.Join(lines, "\n"))
	if m == nil {
		return "", p.Unfit("%s is not %s: --version prints %q", filepath.Base(path), p.Names[0], logs.LastWords(lines))
	}
	return strings.TrimSpace(m[1]), nil
}

// CheckGGUF checks that a model is a GGUF file with a valid header. The architecture is up to the engine.
func CheckGGUF(engineName string, m models.Model) error {
	if m.Format != "" && m.Format != models.GGUF {
		return engine.SetUp(fault.New(fault.BadModel, "name the model's GGUF, which every engine runs",
			"%s needs a GGUF file; model %s is a %s", engineName, m.Name, models.Title(m.Format)))
	}
	f, err := gguf.Open(m.Path)
	if err != nil {
		return engine.SetUp(err)
	}
	return f.Close()
}

// Known caches what was found out about a program until its file changes, because hashing takes time.
type Known[T any] struct {
	In *place.Place // where the program is; nil: on this machine

	mu   sync.Mutex
	path string
	file os.FileInfo
	what T
}

// Of returns what is known about a program; look finds it out, given the hash. The hash does not cover a script's
// interpreter or libraries.
func (k *Known[T]) Of(path string, look func(sha256 string) (T, error)) (T, error) {
	var none T
	now, err := k.In.Stat(path)
	if err != nil {
		return none, fmt.Errorf("checking a program: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.path == path && os.SameFile(k.file, now) && k.file.Size() == now.Size() &&
		k.file.ModTime().Equal(now.ModTime()) {
		return k.what, nil
	}
	sum, err := k.In.Hash(path)
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
