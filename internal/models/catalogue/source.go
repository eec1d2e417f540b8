package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/workers"
	"llmparity/internal/models/mlc"
)

// source is where models come from: the public URLs, or a mirror that has the same paths.
type source struct {
	mirror *url.URL // nil: the public URLs
	name   string   // of the mirror, in the store
	client *http.Client
}

// openSource reads --mirror: "", a URL or a folder. A nil transport is the default.
func openSource(mirror string, transport http.RoundTripper) (*source, error) {
	if transport == nil {
		transport = newTransport()
	}
	s := &source{client: &http.Client{Transport: transport, CheckRedirect: checkRedirect}}
	if mirror == "" {
		return s, nil
	}
	if !strings.Contains(mirror, "://") {
		return s, s.folder(mirror)
	}
	u, err := url.Parse(mirror)
	if err == nil {
		err = Safe(u)
	}
	if err == nil && (u.Host == "" || u.RawQuery != "" || u.Fragment != "") {
		err = errors.New("want https://HOST/PATH or a folder")
	}
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "--mirror %q", mirror)
	}
	s.mirror, s.name = u, strings.TrimSuffix(u.Redacted(), "/")
	return s, nil
}

// folder makes a folder the mirror. Its files are read like those of a server.
func (s *source) folder(dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return fault.Wrap(fault.Usage, err, "", "--mirror %q", dir)
	}
	if info, err := os.Stat(absolute); err != nil || !info.IsDir() {
		return fault.New(fault.Usage, "name a folder with the paths of the public site, or an https:// URL",
			"mirror %s is not a folder", dir)
	}
	s.mirror, s.name = &url.URL{Scheme: "file", Path: "/"}, absolute
	s.client = &http.Client{Transport: http.NewFileTransportFS(os.DirFS(absolute)),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // a folder
	return nil
}

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // so that byte ranges are those of the file
	t.DialContext = (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 15 * time.Second
	t.ResponseHeaderTimeout = time.Minute
	return t
}

func (s *source) close() { s.client.CloseIdleConnections() }

// shown returns a URL for people: a path for a file in a folder.
func (s *source) shown(u *url.URL) string {
	if u.Scheme == "file" {
		return filepath.Join(s.name, filepath.FromSlash(u.Path))
	}
	return u.Redacted()
}

// file returns the URL of a file of the entry's package, in the version that the entry names, or else in main.
func (s *source) file(e Entry, name string) *url.URL {
	u := parse(e.Model)
	if !strings.Contains(u.Path, "/resolve/") {
		u = u.JoinPath("resolve", "main")
	}
	return s.at(u.JoinPath(name))
}

// at puts the path of a public URL below the mirror.
func (s *source) at(public *url.URL) *url.URL {
	if s.mirror == nil {
		return public
	}
	return s.mirror.JoinPath(strings.TrimPrefix(public.EscapedPath(), "/"))
}

// parse parses a URL of the catalogue. A test checks them all.
func parse(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil {
		return &url.URL{Scheme: "https", Host: "invalid.invalid", Path: "/"}
	}
	return u
}

// Safe returns an error unless a URL is https, or http on this machine.
func Safe(u *url.URL) error {
	ip := net.ParseIP(u.Hostname())
	switch {
	case u.Scheme == "https", u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()):
		return nil
	case u.Scheme == "http":
		return errors.New("only https is trusted beyond this machine")
	}
	return fmt.Errorf("%s:// URLs are not supported", u.Scheme)
}

var errRedirect = errors.New("not followed")

// checkRedirect follows redirections to safe URLs, but to this machine only from this machine: a public host must not
// reach local servers.
func checkRedirect(r *http.Request, via []*http.Request) error {
	const most = 10
	err := Safe(r.URL)
	switch {
	case len(via) >= most:
		err = fmt.Errorf("there were %d before", most)
	case err == nil && r.URL.Scheme == "http" && via[0].URL.Scheme != "http":
		err = errors.New("only https is trusted beyond this machine")
	}
	if err != nil {
		return fmt.Errorf("redirected to %s, %w: %w", r.URL.Redacted(), errRedirect, err)
	}
	return nil
}

// Sizes returns the bytes of the models' weights on a mirror, by id, for the models that it has. If the mirror cannot
// be reached, the first request ends it.
func Sizes(ctx context.Context, models []Entry, o FetchOptions) (map[string]int64, error) {
	from, err := openSource(o.Mirror, o.Transport)
	if err != nil {
		return nil, err
	}
	defer from.close()
	sizes := map[string]int64{}
	var mu sync.Mutex
	err = workers.Each(ctx, 2*atOnce, len(models), func(ctx context.Context, i int) error {
		text, err := from.list(ctx, models[i])
		if unreached(err) {
			return fault.Wrap(fault.Download, err, "check its address", "mirror %s cannot be reached", o.Mirror)
		}
		if shards, err := mlc.ParseShards(text); err == nil {
			mu.Lock()
			defer mu.Unlock()
			sizes[models[i].ID] = bytesOf(shards)
		}
		return nil // other errors: unknown
	})
	return sizes, err
}

// Published returns a model's configuration and its list of weights on a mirror. The error is fs.ErrNotExist if the
// mirror lacks one of them.
func Published(ctx context.Context, e Entry, o FetchOptions) (config, weights []byte, err error) {
	from, err := openSource(o.Mirror, o.Transport)
	if err != nil {
		return nil, nil, err
	}
	defer from.close()
	if config, err = from.text(ctx, from.file(e, ConfigName)); err == nil {
		weights, err = from.list(ctx, e)
	}
	switch {
	case missing(err):
		err = fs.ErrNotExist
	case err != nil:
		err = fault.Wrap(fault.Download, err, "check the address", "mirror %s", o.Mirror)
	}
	return config, weights, err
}

// list reads a model's list of weights.
func (s *source) list(ctx context.Context, e Entry) (text []byte, err error) {
	err = eitherList(func(name string) error {
		text, err = s.text(ctx, s.file(e, name))
		return err
	})
	return text, err
}

// text reads a file of a package.
func (s *source) text(ctx context.Context, at *url.URL) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := newRequest(ctx, at)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errStatus(resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxText))
}
