// Package whole writes files and folders atomically: a reader sees the old content or all of the new one.
//
// The next writer in a folder removes what killed writers left there; without file locks the leftovers stay. It
// replaces only regular files. Callers of NewFolder rename the folder themselves, because they know what it may
// replace. Lock protects operations that take several steps.
package whole

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNotRegular says that the path is a folder, a pipe, a device or a socket, or a link to one.
var ErrNotRegular = errors.New("it is not a regular file")

// Replaceable returns an error if path is something other than a regular file.
func Replaceable(path string) error {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "write", Path: path, Err: ErrNotRegular}
	}
	return nil
}

// Write creates the file at path with what write writes.
func Write(path string, write func(io.Writer) error) error {
	return Fill(path, func(file *os.File) error {
		out := bufio.NewWriterSize(file, 1<<20)
		if err := write(out); err != nil {
			return err
		}
		return out.Flush()
	})
}

// JSON creates the file at path with a value, indented.
func JSON(path string, v any) error {
	return Write(path, func(to io.Writer) error {
		e := json.NewEncoder(to)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// Fill creates the file at path: fill gets an empty file beside it, which is then renamed.
func Fill(path string, fill func(*os.File) error) (err error) {
	if err := Replaceable(path); err != nil {
		return err
	}
	parent := filepath.Dir(path)
	name, held, err := aside(parent, func() (string, error) { return newFile(parent) })
	if err != nil {
		return err
	}
	defer held.Close() // after the rename: until then the lock protects the file from sweep
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(name)
		}
	}()
	if err := fill(file); err != nil {
		return err
	}
	for _, step := range []func() error{func() error { return file.Chmod(0o644) }, file.Sync, file.Close} {
		if err := step(); err != nil {
			return err
		}
	}
	return os.Rename(name, path)
}

// Until returns a writer to out that fails once the context is done.
func Until(ctx context.Context, out io.Writer) io.Writer { return until{ctx, out} }

type until struct {
	context.Context
	out io.Writer
}

func (u until) Write(b []byte) (int, error) {
	if u.Err() != nil {
		return 0, context.Cause(u)
	}
	return u.out.Write(b)
}
