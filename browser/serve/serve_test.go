package serve

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"llmparity/internal/kit/check"
)

func get(t *testing.T, url string) (int, string, http.Header) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(url)
	check.Err(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	check.Err(t, err)
	return r.StatusCode, string(body), r.Header
}

func TestServer(t *testing.T) {
	s, err := Loopback(Folder(fstest.MapFS{"index.html": {Data: []byte("page")},
		"dist/lib.js": {Data: []byte("code")}}))
	check.Err(t, err)
	defer s.Close()
	if !strings.HasPrefix(s.Base, "http://127.0.0.1:") {
		t.Fatalf("the server listens at %s", s.Base)
	}
	for path, want := range map[string]string{"/": "page", "/dist/lib.js": "code"} {
		code, body, header := get(t, s.Base+path)
		if code != http.StatusOK || body != want {
			t.Errorf("%s: %d %q, want %q", path, code, body, want)
		}
		if header.Get("Cross-Origin-Opener-Policy") != "same-origin" ||
			header.Get("Cross-Origin-Embedder-Policy") != "require-corp" ||
			!strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s does not isolate the page: %v", path, header)
		}
	}
	root := s.Base[:strings.LastIndex(s.Base, "/")]
	for _, url := range []string{root + "/", root + "/index.html", root + "/0123456789abcdef0123456789abcdef/",
		s.Base + "/dist", s.Base + "/dist/", s.Base + "/..%2f..%2fetc/passwd"} {
		if code, body, _ := get(t, url); code != http.StatusNotFound {
			t.Errorf("%s: %d %q, want nothing", url, code, body)
		}
	}
}
