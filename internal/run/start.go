package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"llmparity/internal/engine"
	"llmparity/internal/pagecache"
	"llmparity/internal/record"
)

// fromDisk evicts the model's files from the page cache, or reads them into it, as the cell requests. It warns if that
// fails.
func (a *attempt) fromDisk(ctx context.Context) {
	start := a.cell.Start
	if start == "" {
		return
	}
	files, err := filesOf(a.setup, a.cell.engine)
	for ; err == nil && len(files) > 0; files = files[1:] {
		if start == record.ColdStart {
			err = pagecache.Evict(files[0])
		} else {
			err = pagecache.Load(ctx, files[0])
		}
	}
	if err != nil {
		a.rec.Warn(record.Warnf("not-"+start, "no %s start: %v", start, err))
	}
}

// filesOf lists the files that an engine reads the model from.
func filesOf(s *current, e engine.Engine) ([]string, error) {
	paths := s.Of(e).Files()
	if reader, ok := e.(engine.Reader); ok {
		paths = reader.Files(s.Of(e))
	}
	var out []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		path, err := filepath.EvalSymlinks(path) // as in Hugging Face's cache
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
