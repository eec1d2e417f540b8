// Package regular reads files that others wrote, of which no more is known than how large one of their kind can be.
//
// It reads them whole: it is for texts, not for weights.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Read gives a regular file's content, of no more than so many bytes. Opening a pipe would wait for somebody who writes
// into it, and a device has no end: both are refused. Errors are without the file's name, which the caller says.
func Read(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1)) // it may grow meanwhile
	if err != nil {
		return nil, cause(err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("it is larger than %d MiB, which no such file is", most>>20)
	}
	return text, nil
}

func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
