package catalogue

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"llmparity/internal/fault"
)

// source is where models come from: the public addresses, or a mirror of them, below which the same paths lie.
type source struct {
	mirror *url.URL // nil: the public addresses
	name   string   // as it is written into the store; empty: the public addresses
	client *http.Client
}

// newSource reads --mirror: an address, or a folder. Over the transport, which may be nil, goes everything but a
// folder's files.
func newSource(mirror string, transport http.RoundTripper) (*source, error) {
	if transport == nil {
		transport = newTransport()
	}
	s := &source{client: &http.Client{Transport: transport, CheckRedirect: SafeRedirect}}
	if mirror == "" {
		return s, nil
	}
	if !strings.Contains(mirror, "://") {
		return s, s.folder(mirror)
	}
	u, err := url.Parse(mirror)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "the mirror %q", mirror)
	}
	if u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.New(fault.Usage, "name it as https://HOST/PATH or as a folder",
			"the mirror %q is no address of a folder",
			mirror)
	}
	if err := Safe(u); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "the mirror %q", mirror)
	}
	s.mirror, s.name = u, strings.TrimSuffix(u.Redacted(), "/")
	return s, nil
}

// folder makes a folder the mirror. Its files are read as a server's would be, so that there is one way to fetch.
func (s *source) folder(dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return fault.Wrap(fault.Usage, err, "", "the mirror %q", dir)
	}
	if info, err := os.Stat(absolute); err != nil || !info.IsDir() {
		return fault.New(fault.Usage, "use a folder with the layout of the public site, or an https:// URL",
			"the mirror %s is no folder", dir)
	}
	s.mirror, s.name = &url.URL{Scheme: "file", Path: "/"}, absolute
	s.client = &http.Client{Transport: http.NewFileTransportFS(os.DirFS(absolute)),
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a folder in a file's place
		}}
	return nil
}

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // a part of a file must be a part of the file
	t.DialContext = (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 15 * time.Second
	t.ResponseHeaderTimeout = time.Minute
	return t
}

func (s *source) close() { s.client.CloseIdleConnections() }

// shown is an address for people: a folder's file by its path.
func (s *source) shown(u *url.URL) string {
	if u.Scheme == "file" {
		return filepath.Join(s.name, filepath.FromSlash(u.Path))
	}
	return u.Redacted()
}

// resolved is how an address names a version; without it, that is main.
var resolved = regexp.MustCompile(`/resolve/[^/]+/?$`)

// file gives the address of a file of the entry's package.
func (s *source) file(e Entry, name string) *url.URL {
	u := mustParse(e.Model)
	if !resolved.MatchString(u.Path) {
		u = u.JoinPath("resolve", "main")
	}
	return s.at(u.JoinPath(name))
}

// library gives the address of the entry's model library.
func (s *source) library(e Entry) *url.URL { return s.at(mustParse(e.Library)) }

// at puts a public address's path below the mirror.
func (s *source) at(public *url.URL) *url.URL {
	if s.mirror == nil {
		return public
	}
	return s.mirror.JoinPath(strings.TrimPrefix(public.EscapedPath(), "/"))
}

// mustParse parses an address that Parse has passed. Another one, of an entry made by hand, leads nowhere, which the
// fetch tells.
func mustParse(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil {
		return &url.URL{Scheme: "https", Host: "invalid.invalid", Path: "/"}
	}
	return u
}

// Safe tells whether an address may be fetched from: by https, or on this machine.
func Safe(u *url.URL) error {
	host := u.Hostname()
	ip := net.ParseIP(host)
	switch {
	case u.Scheme == "https", u.Scheme == "http" && (host == "localhost" || ip != nil && ip.IsLoopback()):
		return nil
	case u.Scheme == "http":
		return errors.New("only https is trusted beyond this machine")
	}
	return fmt.Errorf("%s:// URLs are not supported", u.Scheme)
}

// errRedirect is a redirection that is not followed.
type errRedirect struct {
	to  string
	why string
}

func (e *errRedirect) Error() string {
	return fmt.Sprintf("it is redirected to %s, which is not followed: %s", e.to, e.why)
}

// SafeRedirect is a client's CheckRedirect: it follows no redirection to where Safe says no, and none from elsewhere to
// this machine.
func SafeRedirect(r *http.Request, via []*http.Request) error {
	const most = 10
	if len(via) >= most {
		return &errRedirect{r.URL.Redacted(), fmt.Sprintf("there were %d before", most)}
	}
	if r.URL.Scheme == "http" && r.URL.Host == via[0].URL.Host && via[0].URL.Scheme == "http" {
		return nil // the address that was given, which was found to be safe
	}
	// To this machine only from this machine: a public host must not lead to what listens here.
	if err := Safe(r.URL); err != nil || r.URL.Scheme == "http" && via[0].URL.Scheme != "http" {
		return &errRedirect{r.URL.Redacted(), "only https is trusted beyond this machine"}
	}
	return nil
}
