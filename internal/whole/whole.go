// Package whole writes files and folders that appear under their names in one step: whoever opens one finds all of it,
// or what was there before.
//
// What a killed writer left beside the target is removed by the next one that writes into the same folder; where files
// can't be locked it stays, because nobody can tell whether it is being written. It can't replace what is no regular
// file, and refuses to; a folder is put into its place by whoever had it made, and who can tell what may be replaced.
// What takes more than one step has Lock.
package whole

import (
	"bufio"
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

// Writable tells, before what takes long, what would hinder a file from being written at path; nothing is left there.
func Writable(path string) error {
	if err := Replaceable(path); err != nil {
		return err
	}
	name, err := newFile(filepath.Dir(path))
	if err != nil {
		return err
	}
	return os.Remove(name)
}

// Write has write make the file at path.
func Write(path string, write func(io.Writer) error) error {
	return Fill(path, func(file *os.File) error {
		out := bufio.NewWriterSize(file, 1<<20)
		if err := write(out); err != nil {
			return err
		}
		return out.Flush()
	})
}

// Fill has fill make the file at path: it is given an empty one beside it.
func Fill(path string, fill func(*os.File) error) (err error) {
	if err := Replaceable(path); err != nil {
		return err
	}
	parent := filepath.Dir(path)
	name, held, err := aside(parent, func() (string, error) { return newFile(parent) })
	if err != nil {
		return err
	}
	defer release(held) // after the renaming: until then the lock keeps others from sweeping it
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
