package catalogue

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"

	"llmparity/internal/whole"
)

// sums are a file's size and hashes, as far as it was read.
type sums struct {
	bytes  int64
	md, sh hash.Hash
}

func newSums() sums { return sums{md: md5.New(), sh: sha256.New()} }

func (s *sums) Write(b []byte) (int, error) {
	s.md.Write(b) // hashes never fail
	s.sh.Write(b)
	s.bytes += int64(len(b))
	return len(b), nil
}

func (s sums) md5() string { return hex.EncodeToString(s.md.Sum(nil)) }

func (s sums) file(w wanted) File {
	return File{Name: w.name, From: w.shown, Bytes: s.bytes, SHA256: hex.EncodeToString(s.sh.Sum(nil))}
}

// sumFile reads a file.
func sumFile(ctx context.Context, path string) (sums, error) {
	s := newSums()
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	return s, copyInto(ctx, &s, f)
}

func copyInto(ctx context.Context, to io.Writer, from io.Reader) error {
	_, err := io.CopyBuffer(whole.Until(ctx, to), from, make([]byte, 256<<10))
	return err
}

// part is a file that is not whole yet. What the server said of the whole lies beside it, so that another time it can
// be asked for the rest of the same.
type part struct {
	file  *os.File
	path  string
	sums  sums // of what is there
	known known
}

// known is what a server said of a file.
type known struct {
	URL      string `json:"url"`
	ETag     string `json:"etag,omitempty"` // a strong one
	Modified string `json:"modified,omitempty"`
	Total    int64  `json:"total,omitempty"` // 0: not told
}

// validator is what a server can tell by whether it still has the same file.
func (k known) validator() string {
	if k.ETag != "" {
		return k.ETag
	}
	return k.Modified
}

// other tells whether an answer is of another file.
func (k known) other(h http.Header, total int64) bool {
	etag := strong(h.Get("ETag"))
	return k.ETag != "" && etag != "" && etag != k.ETag || k.Total > 0 && total >= 0 && total != k.Total
}

// strong is an ETag if it stands for the very bytes.
func strong(etag string) string {
	if strings.HasPrefix(etag, `"`) {
		return etag
	}
	return ""
}

// openPart opens the part of the file path that an earlier fetch from the same address has left, or begins one.
func openPart(ctx context.Context, path, url string) (*part, error) {
	p := &part{path: path + partial, sums: newSums()}
	text, err := os.ReadFile(p.sidecar())
	fresh := err != nil || json.Unmarshal(text, &p.known) != nil || p.known.URL != url
	if p.file, err = os.OpenFile(p.path, os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return nil, &errDisk{err}
	}
	if fresh {
		err = p.reset()
		p.known.URL = url
	} else {
		err = copyInto(ctx, &p.sums, p.file)
	}
	if err != nil {
		p.close()
		return nil, &errDisk{err}
	}
	return p, nil
}

func (p *part) sidecar() string { return p.path + ".json" }

// reset empties the file.
func (p *part) reset() error {
	p.sums, p.known = newSums(), known{URL: p.known.URL}
	if err := p.file.Truncate(0); err != nil {
		return err
	}
	_, err := p.file.Seek(0, io.SeekStart)
	return err
}

// know writes down what a server said, before anything of the file is written.
func (p *part) know(h http.Header, total int64) error {
	p.known = known{URL: p.known.URL, ETag: strong(h.Get("ETag")), Modified: h.Get("Last-Modified"),
		Total: max(total, 0)}
	text, err := json.Marshal(p.known)
	if err != nil {
		return err
	}
	return os.WriteFile(p.sidecar(), text, 0o644) // one that is torn is none
}

// append adds what is read; the file must not grow beyond limit.
func (p *part) append(ctx context.Context, from io.Reader, limit int64) error {
	return copyInto(ctx, &growing{p, limit}, from)
}

type growing struct {
	part  *part
	limit int64
}

func (g *growing) Write(b []byte) (int, error) {
	if g.part.sums.bytes+int64(len(b)) > g.limit {
		return 0, &errWrong{fmt.Errorf("the server sends more than the limit of %s", size(g.limit))}
	}
	n, err := g.part.file.Write(b)
	g.part.sums.Write(b[:n]) // never fails
	if err != nil {
		return n, &errDisk{err}
	}
	return n, nil
}

// publish gives the file its name.
func (p *part) publish(path string) error {
	if err := p.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(p.path, path); err != nil {
		return err
	}
	return os.Remove(p.sidecar())
}

func (p *part) close() { _ = p.file.Close() } // again, after publish
