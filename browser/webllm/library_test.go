package webllm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/mlc"
	"llmparity/internal/modellib"
)

func TestOriginOfLibraries(t *testing.T) {
	ours := mlc.Library{Metadata: mlc.Metadata{Own: &mlc.Own{Variant: modellib.Variant{Kernels: "gpu", Sort: "full"}}}}
	for _, c := range []struct {
		given string
		lib   mlc.Library
		want  Library
	}{
		{"https://raw.githubusercontent.com/mlc-ai/binary-mlc-llm-libs/main/web-llm-models/v0_2_80/X-webgpu.wasm",
			mlc.Library{},
			Library{Origin: MLC, Detail: "v0_2_80/X-webgpu.wasm", Kernels: GPUKernels}},
		{"https://github.com/mlc-ai/binary-mlc-llm-libs/raw/main/web-llm-models/v0_2_80/X-webgpu.wasm?a=b",
			mlc.Library{},
			Library{Origin: MLC, Detail: "v0_2_80/X-webgpu.wasm", Kernels: GPUKernels}},
		{"https://example.com/mlc-ai/binary-mlc-llm-libs/v0/X.wasm", mlc.Library{},
			Library{Origin: Given, Detail: "X.wasm"}},
		{"libs/mlc-ai/X.wasm", mlc.Library{}, Library{Origin: Given, Detail: "X.wasm"}},
		{"https://example.com/lib.wasm", ours,
			Library{Origin: Ours, Detail: "gpu kernels, full sort", Kernels: "gpu"}},
	} {
		var got Library
		got.Origin, got.Detail, got.Kernels = OriginOf(c.given, c.lib)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.given, got, c.want)
		}
	}
}

func TestFetchRefusesOtherFiles(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://192.0.2.1/lib.wasm", http.StatusFound)
		case "/page":
			fmt.Fprint(w, "<!doctype html>")
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	for path, want := range map[string]string{"/missing": "404", "/away": "only https is trusted",
		"/page": "is not a model library"} {
		_, err := fetch(t.Context(), dir, server.URL+path, func(string) {})
		if fault.Of(err) != fault.BadLibrary || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want a line with %q", path, err, want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("kept: %v", left)
	}
}
