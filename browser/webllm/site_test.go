package webllm

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
)

func TestSite(t *testing.T) {
	dir := check.Tree(t, t.TempDir(), map[string]string{"model/tensor-cache.json": "tensors", "library.wasm": "wasm",
		"secret": "secret", "bundle.js": "bundle", "model/link": "-> ../secret"})
	s, err := newSite(Bundle{Path: filepath.Join(dir, "bundle.js")})
	check.Err(t, err)
	defer s.close()
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, _ := get("/0/library.wasm"); code != http.StatusNotFound {
		t.Errorf("library before any exists: %d", code)
	}
	var offers [2]string
	for i := range offers {
		p := Package{Dir: filepath.Join(dir, "model"), Library: Library{Path: filepath.Join(dir, "library.wasm")}}
		if offers[i], err = s.offer(p); err != nil {
			t.Fatal(err)
		}
	}
	if offers[0] == offers[1] {
		t.Error("two offers have the same URL")
	}
	model := "/" + offers[1] + "/model/resolve/main/"
	for path, want := range map[string]string{
		"/engine/web-llm.js":              "bundle",
		model + "tensor-cache.json":       "tensors",
		model + "ndarray-cache.json":      "tensors", // requested by older versions of WebLLM
		"/" + offers[1] + "/library.wasm": "wasm",
	} {
		if code, body := get(path); code != http.StatusOK || body != want {
			t.Errorf("%s: %d %q, want %q", path, code, body, want)
		}
	}
	for _, path := range []string{"/" + offers[0] + "/library.wasm",
		"/" + offers[0] + "/model/resolve/main/tensor-cache.json",
		"/" + offers[1] + "/model/", model, model + "link", model + "..%2fsecret"} {
		if code, body := get(path); code == http.StatusOK || strings.Contains(body, "secret") {
			t.Errorf("%s: %d %q, want nothing", path, code, body)
		}
	}
}
