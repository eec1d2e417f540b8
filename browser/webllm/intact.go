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

// shard is a file of weights as a package's list has it.
type shard struct {
	Path  string `json:"dataPath"`
	Bytes int64  `json:"nbytes"`
	MD5   string `json:"md5sum"` // empty: the list doesn't say
}

// stamp is by what a file that was read is known not to have changed.
type stamp struct {
	bytes   int64
	changed time.Time
}

// intact makes sure that the weights of a package are the bytes that its own list says: WebLLM takes whatever comes.
// Each file is read once, before anything is measured, and again only when it has changed since.
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
			return engine.Fail(record.Download, "the model package: its list names a file outside of it: %s", s.Path)
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
		return fmt.Errorf("%s has %d bytes, and its list says %d", s.Path, bytes, s.Bytes)
	}
	if s.MD5 == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := md5.New() // what packages have: against accidents, not against enemies
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != s.MD5 {
		return fmt.Errorf("%s has other bytes than its list says (MD5 %s, not %s)", s.Path, sum, s.MD5)
	}
	return nil
}
