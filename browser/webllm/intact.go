package webllm

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/mlc"
	"llmparity/internal/record"
	"llmparity/internal/whole"
)

// stamp shows that a file has not changed since it was read.
type stamp struct {
	bytes   int64
	changed time.Time
}

// intact verifies the weights against the package's own list, because WebLLM does not. Each file is read once, before
// anything is measured, and again only after a change.
func (w *WebLLM) intact(ctx context.Context, p Package) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	existing, err := mlc.OpenPackage(p.Dir) // checks sizes
	if err != nil {
		return engine.Fail(record.Download, "the model package: %w", err)
	}
	for _, s := range existing.Shards {
		path := filepath.Join(p.Dir, s.File)
		info, err := os.Stat(path)
		if err == nil && w.read[path] != (stamp{info.Size(), info.ModTime()}) {
			err = hasMD5(ctx, path, s.MD5)
		}
		if err != nil {
			return engine.Fail(record.Download, "the model package: %w", err)
		}
		w.read[path] = stamp{info.Size(), info.ModTime()}
	}
	return nil
}

// hasMD5 reads a file; sum may be empty.
func hasMD5(ctx context.Context, path, sum string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := md5.New() // as in packages; detects accidents, not attacks
	if _, err := io.Copy(whole.Until(ctx, h), f); err != nil {
		return err
	}
	if is := hex.EncodeToString(h.Sum(nil)); sum != "" && is != sum {
		return fmt.Errorf("%s is damaged: its MD5 is %s instead of %s", filepath.Base(path), is, sum)
	}
	return nil
}
