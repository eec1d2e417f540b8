// Package program finds the programs that engines start, identifies them, and asks them what they are.
//
// It looks in places and takes what bears the right name: whether that is the program that it seems to be is its
// engine's to find out.
package program

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

// Program is one that engines start.
type Program struct {
	Names    []string // on PATH, the first of them also in a build of our own
	Build    string   // where that lies in the cache folder
	Flag     string   // by which a user names another
	Variable string   // of the environment, by which too

	Kind fault.Kind // of its being missing or of no use
	Do   string     // what helps then
}

// Find looks for the program where it was named, then on PATH by its first name, then in the cache folder, if that is
// given, then on PATH by other names. One that was named is taken or is an error: another one in its place would be
// measured without anybody's knowing.
func (p Program) Find(given, cache string) (string, error) {
	for _, named := range []struct{ path, by string }{{given, p.Flag}, {os.Getenv(p.Variable), p.Variable}} {
		if named.path == "" {
			continue
		}
		path, err := exec.LookPath(named.path)
		if err != nil {
			return "", p.Unfit("%s names %s, which can't be run (%v)", named.by, named.path, Cause(err))
		}
		return filepath.Abs(path)
	}
	if path, err := exec.LookPath(p.Names[0]); err == nil {
		return filepath.Abs(path)
	}
	if cache != "" {
		// Resolved, so that a record names the build and not the set-up's link to it.
		if path, err := filepath.EvalSymlinks(filepath.Join(cache, p.Build, p.Names[0])); err == nil {
			return path, nil
		}
	}
	for _, older := range p.Names[1:] {
		if path, err := exec.LookPath(older); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", p.Unfit("no %s on PATH or in the cache", p.Names[0])
}

// Cause is why a program can't be run, without its name.
func Cause(err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}

// Unfit is for one that is missing, or was found and is of no use.
func (p Program) Unfit(format string, args ...any) *engine.Failure {
	return &engine.Failure{Class: record.SetUp, Err: fault.New(p.Kind, p.Do, format, args...)}
}

// Ask runs the program with one argument, upon which it says something and ends, and gives its lines. That also shows
// whether it can run here at all. env is all of its environment.
func (p Program) Ask(ctx context.Context, path, question string, env []string) ([]string, error) {
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
		return nil, p.Unfit("%s %s fails (%s): %s", path, question, asked.Exit(), logs.LastWords(lines))
	}
	return lines, nil
}

// CheckGGUF looks at the header of a model's file. Which architectures there are is left to who runs it.
func CheckGGUF(m engine.Model) error {
	f, err := gguf.Open(m.Path)
	if err != nil {
		return engine.SetUp(err)
	}
	return f.Close()
}
