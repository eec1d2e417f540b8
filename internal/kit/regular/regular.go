// Package regular reads untrusted text files whole, up to a size limit.
package regular

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens a regular file. It refuses pipes before opening them, because that blocks, and devices, which have no end.
// Errors don't contain the file's name.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, Cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	return f, Cause(err)
}

// Read returns the content of a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1)) // it may be growing
	if err != nil {
		return nil, Cause(err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("larger than %d MiB, the limit for such files", limit>>20)
	}
	return text, nil
}

// JSON decodes a regular file of at most limit bytes.
func JSON(path string, limit int64, to any) error {
	text, err := Read(path, limit)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	return err
}

// Cause drops the path of an error of the file system, for messages that name it anyway.
func Cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
