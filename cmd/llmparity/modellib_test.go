package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"llmparity/assets/bundle"
	"llmparity/browser/webllm"
	"llmparity/internal/host/cache"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modellib"
)

// The record names a model library and a WebLLM bundle that the user gave.
func TestGivenLibraryAndBundleAreNamed(t *testing.T) {
	browserTest(t)
	t.Parallel()
	m := tinyOf(t)
	f, err := gguf.Open(m.Path)
	check(t, err)
	defer f.Close()
	options := webllm.PackageOptions(m.Context, webllm.F32, "", "")
	lib, err := webllm.Compile(t.Context(), cache.Dir(os.Getenv), f, options,
		modellib.Variant{Kernels: "software", Sort: "partial"}, func(s string) { t.Log(s) })
	check(t, err)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.ServeFile(w, r, lib.Path)
	}))
	defer server.Close()
	code, err := bundle.Script()
	check(t, err)
	cmd := oneLaunch(t, "webllm", "--model-lib", server.URL+"/v0/any.wasm", "--webllm-bundle", "node/lib/mine.js")
	// Only what is fetched: the rest of the cache need not be made again.
	kept := filepath.Join(cmd.Dir, "cache")
	cmd.Env = append(cmd.Env, "LLMPARITY_CACHE="+kept)
	put(t, cmd.Dir, "node/lib/mine.js", string(code))
	put(t, cmd.Dir, "node/package.json", `{"name": "@mlc-ai/web-llm", "version": "0.2.86-mine"}`)
	well(t, cmd, "downloading the model library "+server.URL)
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
	r := recorded(t, cmd.Dir)
	said := lastEngine(r.Attempts[len(r.Attempts)-1])
	read, err := mlc.OpenLibrary(lib.Path)
	check(t, err)
	want := webllm.Describe(server.URL+"/v0/any.wasm", read)
	want.SHA256 = lib.SHA256
	if said.Version != "0.2.86-mine" || said.Origin != "file mine.js" || said.Library == nil || *said.Library != want {
		t.Errorf("%s (%s) with %+v, want %+v", said.Version, said.Origin, said.Library, want)
	}
	mentions(t, good(t, "report", r.Dir, "--details"), "WebLLM: 0.2.86-mine (file mine.js), llmparity's library ("+want.Variant+")")
}
