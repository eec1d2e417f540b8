// Package whole writes files that appear under their names in one step: whoever opens one finds all of it, or what was there before.
//
// What a killed writer left beside the target is removed by the next one that writes into the same folder; where files can't be
// locked it stays, because nobody can tell whether it is being written. It can't replace what is no regular file, and refuses to.
package whole

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// prefix begins the names of unfinished files.
const prefix = ".writing-"

// ErrNotRegular is that what is at a path, or where it leads to, is a folder, a pipe, a device or a socket.
var ErrNotRegular = errors.New("it is there, and no regular file")

// Replaceable says why path can't become a file.
func Replaceable(path string) error {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return ErrNotRegular
	}
	return nil
}

// Write has write make the file at path.
func Write(path string, write func(io.Writer) error) (err error) {
	if err := Replaceable(path); err != nil {
		return err
	}
	parent := filepath.Dir(path)
	sweep(parent)
	file, held, err := aside(parent)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
		if held != nil {
			_ = held.Close() // after the renaming: until then the lock keeps others from sweeping it
		}
	}()
	out := bufio.NewWriterSize(file, 1<<20)
	if err := write(out); err != nil {
		return err
	}
	for _, step := range []func() error{out.Flush, func() error { return file.Chmod(0o644) }, file.Sync, file.Close} {
		if err := step(); err != nil {
			return err
		}
	}
	return os.Rename(file.Name(), path)
}

// aside makes a file in parent and locks it.
func aside(parent string) (file, held *os.File, err error) {
	for {
		file, err = os.CreateTemp(parent, prefix+"*")
		if err != nil {
			return nil, nil, err
		}
		held = lock(file.Name())
		// Between the two steps another one may have taken it for a leftover.
		if _, err := os.Stat(file.Name()); !errors.Is(err, fs.ErrNotExist) {
			return file, held, nil
		}
		_ = file.Close()
		if held != nil {
			_ = held.Close()
		}
	}
}

// sweep removes what nobody writes any more.
func sweep(parent string) {
	entries, _ := os.ReadDir(parent) // what can't be read can't be written either, which is told elsewhere
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(parent, e.Name())
		if held := lock(path); held != nil {
			_ = os.Remove(path)
			_ = held.Close()
		}
	}
}
