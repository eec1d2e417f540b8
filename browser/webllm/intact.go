package webllm

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// shard is a weight file in a package's list.
type shard struct {
	Path  string `json:"dataPath"`
	Bytes int64  `json:"nbytes"`
	MD5   string `json:"md5sum"` // may be empty
}

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
	var list struct {
		Records []shard `json:"records"`
	}
	const name = "tensor-cache.json"
	text, err := os.ReadFile(filepath.Join(p.Dir, name))
	if err != nil {
		if older, missing := os.ReadFile(filepath.Join(p.Dir, otherName(name))); missing == nil {
			text, err = older, nil
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return engine.Fail(record.Download, "reading the model package: %s: %w", name, err)
	}
	for _, s := range list.Records {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !filepath.IsLocal(s.Path) {
			return engine.Fail(record.Download, "the model package lists a file outside of it: %s", s.Path)
		}
		path := filepath.Join(p.Dir, filepath.FromSlash(s.Path))
		info, err := os.Stat(path)
		if err != nil {
			return engine.Fail(record.Download, "the model package: %w", err)
		}
		now := stamp{info.Size(), info.ModTime()}
		if w.read[path] == now {
			continue
		}
		if err := s.check(path, now.bytes); err != nil {
			return engine.Fail(record.Download, "the model package: %w", err)
		}
		w.read[path] = now
	}
	return nil
}

func (s shard) check(path string, bytes int64) error {
	if bytes != s.Bytes {
		return fmt.Errorf("%s has %d bytes instead of %d", s.Path, bytes, s.Bytes)
	}
	if s.MD5 == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := md5.New() // as in packages; detects accidents, not attacks
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != s.MD5 {
		return fmt.Errorf("%s is damaged: its MD5 is %s instead of %s", s.Path, sum, s.MD5)
	}
	return nil
}
