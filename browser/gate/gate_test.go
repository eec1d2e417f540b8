package gate_test

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"llmparity/browser/gate"
	"llmparity/browser/serve"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
)

func TestMain(m *testing.M) { childtest.Main(m) }

// started serves one file, and takes what is put.
func started(t *testing.T, o gate.Options) *gate.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET /", serve.Folder(fstest.MapFS{"a.txt": {Data: []byte("inside")}}))
	mux.HandleFunc("PUT /a", func(w http.ResponseWriter, r *http.Request) {})
	s, err := gate.Listen(o, mux)
	check.Err(t, err)
	t.Cleanup(func() { check.Also(t, s.Close()) })
	return s
}

// client makes connections of its own, which end with the test.
func client(t *testing.T) *http.Client {
	stays := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: stays, Timeout: time.Minute}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestWhoIsRefused(t *testing.T) {
	s := started(t, gate.Options{})
	at, err := url.Parse(s.Base)
	check.Err(t, err)
	port, token := at.Port(), at.Path
	const other, leads = "http://evil.example", 0 // to no file
	for _, c := range []struct {
		name, method, path, host, origin string
		status                           int
	}{
		{"the page", "GET", token + "/a.txt", at.Host, "", 200},
		{"by another name of ours", "GET", token + "/a.txt", "localhost:" + port, "http://localhost:" + port, 200},
		{"no token", "GET", "/a.txt", at.Host, "", 404},
		{"half a token", "GET", token[:10] + "/a.txt", at.Host, "", 404},
		{"the root", "GET", "/", at.Host, "", 404},
		{"a name that leads here", "GET", token + "/a.txt", "evil.example:" + port, "", 421},
		{"another port", "GET", token + "/a.txt", "127.0.0.1:1", "", 421},
		{"another site", "GET", token + "/a.txt", at.Host, other, 403},
		{"another site puts", "PUT", token + "/a", at.Host, other, 403},
		{"nobody puts", "PUT", token + "/a", at.Host, "", 403},
		{"the page puts", "PUT", token + "/a", at.Host, "http://" + at.Host, 200},
		{"a path that leads out", "GET", token + "/../../../etc/passwd", at.Host, "", leads},
		{"an encoded one", "GET", token + "/%2e%2e/%2e%2e/etc/passwd", at.Host, "", leads},
		{"an encoded slash", "GET", token + "/..%2f..%2fetc%2fpasswd", at.Host, "", leads},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+at.Host+c.path, nil)
		check.Err(t, err)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		answer, err := client(t).Do(r)
		check.Err(t, err)
		text, err := io.ReadAll(answer.Body)
		check.Err(t, err)
		_ = answer.Body.Close()
		if c.status == leads {
			if answer.StatusCode == 200 || strings.Contains(string(text), "root:") {
				t.Errorf("%s: %d %.80s", c.name, answer.StatusCode, text)
			}
			continue
		}
		if answer.StatusCode != c.status {
			t.Errorf("%s: %d %.80s, want %d", c.name, answer.StatusCode, text, c.status)
		}
		if (c.status == 200) != (answer.Header.Get("Cross-Origin-Opener-Policy") != "") {
			t.Errorf("%s: the page is not isolated, or a stranger learns what this is: %v", c.name, answer.Header)
		}
	}
}

// A thousand connections that send their header slowly keep nobody out and take little memory.
func TestSlowConnections(t *testing.T) {
	s := started(t, gate.Options{})
	at, err := url.Parse(s.Base)
	check.Err(t, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const slow = 1000
	for range slow {
		c, err := net.Dial("tcp", at.Host)
		check.Err(t, err)
		defer c.Close()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: ") // it may be closed already
	}
	begin := time.Now()
	answer, err := client(t).Get(s.Base + "/a.txt")
	check.Err(t, err)
	_ = answer.Body.Close()
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := func(m runtime.MemStats) int64 { return int64(m.HeapInuse + m.StackInuse) }
	if grown := used(after) - used(before); grown > 16<<20 {
		t.Errorf("%d slow connections take %.1f MiB", slow, float64(grown)/(1<<20))
	}
	if took := time.Since(begin); answer.StatusCode != 200 || took > 5*time.Second {
		t.Errorf("%d after %v", answer.StatusCode, took)
	}
}

// The certificate is the same at the next start, so that a person accepts it once, and nobody else may read its key.
func TestCertificate(t *testing.T) {
	folder := t.TempDir()
	var prints []string
	for range 2 {
		s := started(t, gate.Options{Listen: "127.0.0.1:0", Cache: folder})
		answer, err := client(t).Get(s.Base + "/a.txt")
		check.Err(t, err)
		_ = answer.Body.Close()
		sum := sha256.Sum256(answer.TLS.PeerCertificates[0].Raw)
		is := strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
		if s.Fingerprint != is || answer.StatusCode != 200 {
			t.Errorf("%d, fingerprint %s, want %s", answer.StatusCode, s.Fingerprint, is)
		}
		prints = append(prints, s.Fingerprint)
	}
	if prints[0] != prints[1] {
		t.Error("another certificate at the next start")
	}
	path := filepath.Join(folder, "page-certificate.pem")
	info, err := os.Stat(path)
	check.Err(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key can be read by others: %v", info.Mode())
	}
	given := started(t, gate.Options{Listen: "127.0.0.1:0", Certificate: path, Key: path, Cache: t.TempDir()})
	if given.Fingerprint != prints[0] {
		t.Error("the given certificate is not used")
	}
	half := gate.Options{Listen: "127.0.0.1:0", Certificate: path}
	if _, err := gate.Listen(half, http.NotFoundHandler()); fault.Of(err) != fault.Usage {
		t.Errorf("a certificate without a key: %v", err)
	}
}
