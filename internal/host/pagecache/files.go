package pagecache

import (
	"errors"
	"os"
	"path/filepath"
)

// Files lists the files at paths and in folders there, through links as in Hugging Face's cache. None is an error.
func Files(paths []string) (out []string, err error) {
	for _, path := range paths {
		if path == "" {
			continue
		}
		path, err := filepath.EvalSymlinks(path)
		if err == nil {
			err = filepath.Walk(path, func(path string, _ os.FileInfo, err error) error {
				if info, gone := os.Stat(path); gone == nil && info.Mode().IsRegular() && info.Size() > 0 {
					out = append(out, path)
				}
				return err
			})
		}
		if err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the model's files are unknown")
	}
	return out, nil
}
