// Package regular reads untrusted text files whole, up to a size limit.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Read returns the content of a regular file of at most limit bytes. It refuses pipes, which would block, and devices,
// which have no end. Errors don't contain the file's name.
func Read(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1)) // it may be growing
	if err != nil {
		return nil, cause(err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("larger than %d MiB, the limit for such files", limit>>20)
	}
	return text, nil
}

func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
