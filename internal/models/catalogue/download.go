package catalogue

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"llmparity/internal/kit/whole"
)

// wanted is a file to download.
type wanted struct {
	name string
	url  *url.URL
	size int64  // -1: unknown
	md5  string // "": unknown
	most int64  // bytes
	// check checks the content of a file without MD5; nil: not at all.
	check func([]byte) error
}

// downloader downloads files. Errors that may pass are retried.
type downloader struct {
	client   *http.Client
	patience patience
	meter    *meter
}

// patience limits the waiting for a server. Zeros are the defaults.
type patience struct {
	tries   int           // in a row that brought less than gain
	backoff time.Duration // before the second try; doubles each time
	stall   time.Duration // without data
}

const (
	gain        = 1 << 20
	longestWait = 30 * time.Second
)

// part is a file that is not complete yet.
type part struct {
	file *os.File
	sums
}

// sums are the size and hashes of what a file contains so far.
type sums struct {
	size   int64
	md, sh hash.Hash
}

func newSums() sums { return sums{md: md5.New(), sh: sha256.New()} }

func (s *sums) Write(b []byte) (int, error) {
	s.md.Write(b) // hashes never fail
	s.sh.Write(b)
	s.size += int64(len(b))
	return len(b), nil
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// read adds what is in a file.
func (s *sums) read(ctx context.Context, file *os.File) error {
	_, err := io.Copy(whole.Until(ctx, s), file)
	return err
}

// empty discards the content.
func (p *part) empty() error {
	p.sums = newSums()
	_, err := p.file.Seek(0, io.SeekStart)
	return disk(cmp.Or(err, p.file.Truncate(0)))
}

// wrong returns an error if the content is not what is wanted.
func (w wanted) wrong(s sums, file *os.File) error {
	switch {
	case w.size >= 0 && s.size != w.size:
		return &errWrong{fmt.Errorf("it has %d bytes, want %d", s.size, w.size)}
	case w.md5 != "" && hexSum(s.md) != w.md5:
		return &errWrong{fmt.Errorf("wrong content: MD5 %s, want %s", hexSum(s.md), w.md5)}
	case w.check == nil:
		return nil
	}
	text, err := io.ReadAll(io.NewSectionReader(file, 0, s.size))
	if err != nil {
		return disk(err)
	}
	if err := w.check(text); err != nil {
		return &errWrong{err}
	}
	return nil
}

// fill downloads what is missing of a file. A file with a known MD5 is resumed where it ends. If it then turns out to
// be wrong, it may consist of two versions, and is downloaded again from its start.
func (d *downloader) fill(ctx context.Context, w wanted, p *part) error {
	limits := patience{cmp.Or(d.patience.tries, 5), cmp.Or(d.patience.backoff, 500*time.Millisecond),
		cmp.Or(d.patience.stall, time.Minute)}
	again := false // was downloaded from its start, because it was mixed
	for tries := 1; ; tries++ {
		before := p.size
		err := d.attempt(ctx, w, p, limits.stall)
		if err == nil {
			if err = w.wrong(p.sums, p.file); err == nil {
				return nil
			}
		}
		mixed := isWrong(err) && before > 0 && !again
		again = again || mixed
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !mixed && !d.mayPass(err):
			return err
		case p.size-before >= gain:
			tries = 1
		}
		if tries >= limits.tries {
			return fmt.Errorf("%w (tried %d times)", err, tries)
		}
		if mixed || w.md5 == "" {
			if err := d.restart(p); err != nil {
				return err
			}
		}
		wait := min(limits.backoff<<(tries-1), longestWait)
		d.meter.note(fmt.Sprintf("%s: %v; trying again in %s", w.name, err, wait.Round(time.Millisecond)))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

func (d *downloader) restart(p *part) error {
	d.meter.add(-p.size, false)
	return p.empty()
}

// attempt requests what is missing and appends what it gets.
func (d *downloader) attempt(ctx context.Context, w wanted, p *part, stall time.Duration) error {
	if p.size == w.size {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	req, err := newRequest(ctx, w.url)
	if err != nil {
		return err
	}
	if p.size > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", p.size))
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return cmp.Or(stalled(ctx), withoutURL(err))
	}
	defer resp.Body.Close()
	if err := d.accept(resp, p); err != nil {
		return err
	}
	from := p.size
	_, err = io.Copy(writer(func(b []byte) (int, error) {
		watchdog.Reset(stall)
		if p.size+int64(len(b)) > w.most {
			return 0, &errWrong{fmt.Errorf("the server sends more than the limit of %d bytes", w.most)}
		}
		n, err := io.MultiWriter(p.file, &p.sums).Write(b)
		d.meter.add(int64(n), true)
		return n, disk(err)
	}), resp.Body)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the connection was cut after %d of %d bytes", p.size-from, resp.ContentLength)
	}
	return cmp.Or(stalled(ctx), err)
}

// accept checks the head of an answer: it must continue the file, or contain all of it.
func (d *downloader) accept(resp *http.Response, p *part) error {
	switch resp.StatusCode {
	case http.StatusOK:
		return d.restart(p)
	case http.StatusPartialContent:
		var from int64
		if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &from); err == nil && from == p.size {
			return nil
		}
	case http.StatusRequestedRangeNotSatisfiable:
	default:
		return errStatus(resp.StatusCode)
	}
	return cmp.Or(d.restart(p), errors.New("the server sent a different range"))
}

func newRequest(ctx context.Context, at *url.URL) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err == nil {
		req.Header.Set("User-Agent", "llmparity")
	}
	return req, err
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

var errStalled = errors.New("no data for too long")

func stalled(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return nil
}

// Errors other than those of the network.
type (
	errStatus int             // of an answer
	errWrong  struct{ error } // the content is wrong
	errDisk   struct{ error }
)

func (e errStatus) Error() string {
	return fmt.Sprintf("the answer is %d %s", int(e), http.StatusText(int(e)))
}
func (e *errWrong) Unwrap() error { return e.error }
func (e *errDisk) Unwrap() error  { return e.error }

func disk(err error) error {
	if err == nil || isWrong(err) {
		return err
	}
	return &errDisk{err}
}

func isWrong(err error) bool { return errors.As(err, new(*errWrong)) }

func missing(err error) bool {
	status, ok := errors.AsType[errStatus](err)
	return ok && status == http.StatusNotFound
}

// mayPass reports whether another attempt makes sense. An unreachable server is final unless it was reached before.
func (d *downloader) mayPass(err error) bool {
	if status, ok := errors.AsType[errStatus](err); ok {
		return status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
	}
	if isWrong(err) || errors.As(err, new(*errDisk)) || errors.Is(err, errRedirect) {
		return false
	}
	return !unreached(err) || d.meter.reached()
}

// unreached reports whether there was no connection at all.
func unreached(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, new(*net.DNSError))
}

// withoutURL drops the address, which messages have anyway.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
