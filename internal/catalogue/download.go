package catalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// wanted is a file to be fetched, and what is known of it.
type wanted struct {
	name  string
	url   *url.URL
	shown string // url for people
	bytes int64  // -1: not known
	md5   string // empty: not known
	max   int64
	check func(path string) error // of its content; nil: none
}

// verify compares a file with what is known of it.
func (w wanted) verify(s sums, path string) error {
	switch {
	case w.bytes >= 0 && s.bytes != w.bytes:
		return wrongSize(w.bytes, s.bytes)
	case w.md5 != "" && s.md5() != w.md5:
		return &errWrong{fmt.Errorf("wrong content: MD5 %s, want %s", s.md5(), w.md5)}
	case w.check == nil:
		return nil
	}
	if err := w.check(path); err != nil {
		return &errWrong{err}
	}
	return nil
}

// gain is how much an attempt must bring for the ones before it to be forgiven.
const gain = 1 << 20

// download fetches a file to path, in as many attempts as patience has: each goes on where the one before was cut.
func (f *fetcher) download(ctx context.Context, w wanted, path string) (File, error) {
	p, err := openPart(ctx, path, w.url.String())
	if err != nil {
		return File{}, err
	}
	defer p.close()
	f.meter.add(p.sums.bytes, false)
	// Whether the file is joined of several answers, and whether it was begun again for that.
	joined, again := p.sums.bytes > 0, false
	for tries := 1; ; tries++ {
		before := p.sums.bytes
		err := f.attempt(ctx, w, p)
		if err == nil {
			// What was joined may be of two files; what came in one piece is what the server has.
			if err = f.settle(w, p, path); err == nil {
				return p.sums.file(w), nil
			}
			if !wrong(err) {
				return File{}, err
			}
			if drop := f.drop(p); drop != nil || !joined || again {
				return File{}, cmp.Or(drop, err)
			}
			joined, again, tries = false, true, 0
			continue
		}
		if ctx.Err() != nil {
			return File{}, context.Cause(ctx)
		}
		if !f.again(err) {
			return File{}, err
		}
		if p.sums.bytes-before >= gain {
			tries = 1
		}
		if tries >= f.patience.tries {
			return File{}, &errPatience{tries, err}
		}
		joined = joined || p.sums.bytes > 0
		if err := f.pause(ctx, w, tries, err); err != nil {
			return File{}, err
		}
	}
}

// pause waits before the next attempt, for longer each time, or for as long as the server asks for.
func (f *fetcher) pause(ctx context.Context, w wanted, tries int, why error) error {
	const longest = 30 * time.Second
	wait := f.patience.backoff << (tries - 1)
	var status *errStatus
	if errors.As(why, &status) {
		wait = max(wait, status.after)
	}
	wait = min(wait, longest)
	f.meter.note(fmt.Sprintf("%s: %v; trying again in %s", w.name, why, wait.Round(time.Millisecond)))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
		return nil
	}
}

// settle gives a fetched file its name, if it is the right one.
func (f *fetcher) settle(w wanted, p *part, path string) error {
	if err := p.file.Sync(); err != nil {
		return &errDisk{err}
	}
	if err := w.verify(p.sums, p.path); err != nil {
		return err
	}
	if err := p.publish(path); err != nil {
		return &errDisk{err}
	}
	return nil
}

// drop begins a file again.
func (f *fetcher) drop(p *part) error {
	f.meter.add(-p.sums.bytes, false)
	if err := p.reset(); err != nil {
		return &errDisk{err}
	}
	return nil
}

// attempt asks for what is missing of a file and reads it.
func (f *fetcher) attempt(ctx context.Context, w wanted, p *part) error {
	if n := p.sums.bytes; n > 0 && (n == w.bytes || n == p.known.Total) {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(f.patience.stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	resp, err := f.request(ctx, w, p)
	if err != nil {
		return stalledOr(ctx, err)
	}
	defer resp.Body.Close()
	if err := f.accept(resp, w, p); err != nil {
		return err
	}
	read := reading{resp.Body, func(n int) {
		watchdog.Reset(f.patience.stall)
		f.meter.add(int64(n), true)
	}}
	err = p.append(ctx, read, w.max)
	if n := p.known.Total; n > p.sums.bytes && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) {
		return &errCut{p.sums.bytes, n}
	}
	return stalledOr(ctx, err)
}

// errStalled is a server that says nothing any more.
var errStalled = errors.New("no data for too long")

func stalledOr(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return err
}

// request asks for a file, or for the rest of it, if the server still has the same.
func (f *fetcher) request(ctx context.Context, w wanted, p *part) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "llmparity")
	req.Header.Set("Accept-Encoding", "identity")
	if p.sums.bytes > 0 {
		validator := p.known.validator()
		if validator == "" && w.md5 == "" {
			// Nobody could tell whether the parts fit.
			if err := f.drop(p); err != nil {
				return nil, err
			}
		} else {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", p.sums.bytes))
			if validator != "" {
				req.Header.Set("If-Range", validator)
			}
		}
	}
	return f.from.client.Do(req)
}

// accept looks at an answer's head: what it promises must be what is wanted.
func (f *fetcher) accept(resp *http.Response, w wanted, p *part) error {
	total := resp.ContentLength // -1: not told
	switch resp.StatusCode {
	case http.StatusOK: // all of it, whatever was asked for
		if err := f.drop(p); err != nil {
			return err
		}
	case http.StatusPartialContent:
		from, all, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok || from != p.sums.bytes || from == 0 || p.known.other(resp.Header, all) {
			return errors.Join(f.drop(p), errOtherPart)
		}
		total = all
	case http.StatusRequestedRangeNotSatisfiable:
		return errors.Join(f.drop(p), errOtherPart)
	default:
		return statusOf(resp)
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return &errWrong{fmt.Errorf("unexpected content encoding %s", coding)}
	}
	switch {
	case w.bytes >= 0 && total >= 0 && total != w.bytes:
		return wrongSize(w.bytes, total)
	case total > w.max:
		return &errWrong{fmt.Errorf("has %s, the limit is %s", size(total), size(w.max))}
	}
	if err := p.know(resp.Header, total); err != nil {
		return &errDisk{err}
	}
	return nil
}

// errOtherPart is an answer that doesn't go on where a file ends, so that all of it is asked for.
var errOtherPart = errors.New("the server sent a different range")

var rangeSent = regexp.MustCompile(`^bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)$`)

// contentRange reads where a part begins, and how large the whole is: -1 where that isn't told.
func contentRange(header string) (from, total int64, ok bool) {
	m := rangeSent.FindStringSubmatch(header)
	if m == nil {
		return 0, 0, false
	}
	from, _ = strconv.ParseInt(m[1], 10, 64) // digits, and not too many
	if total = -1; m[2] != "*" {
		total, _ = strconv.ParseInt(m[2], 10, 64)
	}
	return from, total, true
}

func statusOf(resp *http.Response) error {
	e := &errStatus{code: resp.StatusCode}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.after = time.Duration(min(seconds, 3600)) * time.Second
	}
	return e
}

// reading is a reader that tells how much it read.
type reading struct {
	from     io.Reader
	reported func(n int)
}

func (r reading) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if n > 0 {
		r.reported(n)
	}
	return n, err
}
