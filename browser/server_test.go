package browser

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, url string) (int, string, http.Header) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body), r.Header
}

func TestServer(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "model"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("model/tensor-cache.json", "tensors")
	write("library.wasm", "wasm")
	write("secret", "secret")
	if err := os.Symlink("../secret", filepath.Join(dir, "model", "link")); err != nil {
		t.Fatal(err)
	}

	s, err := serve(fstest.MapFS{"index.html": {Data: []byte("page")}, "dist/web-llm.js": {Data: []byte("built in")}},
		[]byte("bundle"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if !strings.HasPrefix(s.base, "http://127.0.0.1:") {
		t.Fatalf("the server listens at %s", s.base)
	}
	if code, _, _ := get(t, s.base+"/0/library.wasm"); code != http.StatusNotFound {
		t.Errorf("the library before there is one: %d", code)
	}
	var bases [2]string
	for i := range bases {
		if bases[i], err = s.offer(Package{Dir: filepath.Join(dir, "model"),
			Library: Library{Path: filepath.Join(dir, "library.wasm")}}); err != nil {
			t.Fatal(err)
		}
	}
	if bases[0] == bases[1] {
		t.Error("two offers have one address")
	}
	model, library := bases[1]+"/model/", bases[1]+"/library.wasm"

	for url, want := range map[string]string{
		s.base + "/":                              "page",
		s.base + "/dist/web-llm.js":               "bundle",
		model + "resolve/main/tensor-cache.json":  "tensors",
		model + "resolve/main/ndarray-cache.json": "tensors", // what older versions of WebLLM ask for
		library: "wasm",
	} {
		code, body, header := get(t, url)
		if code != http.StatusOK || body != want {
			t.Errorf("%s: %d %q, want %q", url, code, body, want)
		}
		if header.Get("Cross-Origin-Opener-Policy") != "same-origin" ||
			header.Get("Cross-Origin-Embedder-Policy") != "require-corp" {
			t.Errorf("%s does not isolate the page: %v", url, header)
		}
	}
	root := s.base[:strings.LastIndex(s.base, "/")]
	for _, url := range []string{
		bases[0] + "/library.wasm", bases[0] + "/model/resolve/main/tensor-cache.json",
		root + "/", root + "/index.html", root + "/0123456789abcdef0123456789abcdef/",
		root + "/model/resolve/main/tensor-cache.json",
		s.base + "/dist", s.base + "/dist/", model, model + "resolve/main/", model + "resolve/main/link",
		model + "resolve/main/..%2fsecret", model + "resolve/main/%2e%2e/secret", s.base + "/..%2f..%2fetc/passwd",
	} {
		if code, body, _ := get(t, url); code != http.StatusNotFound || strings.Contains(body, "secret") {
			t.Errorf("%s: %d %q, want nothing", url, code, body)
		}
	}
}
