package catalogue_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/catalogue"
)

// describedLibrary is a model library with a remark in it.
func describedLibrary(remark string) []byte {
	text := remark + `{"model_type": "llama", "quantization": "q0f32", "context_window_size": 64, "params": ` +
		`[{"name": "w", "shape": ["n", 2], "dtype": "float32"}]}` + "\x00\n// Function: fused_rope_kernel\n pow(1.000000e+04f\x00"
	head := append([]byte("\x00asm\x01\x00\x00\x00\x00"), byte(len(text))|0x80, byte(len(text)>>7))
	return append(head, text...)
}

func TestFetchLibraryPinsItsContent(t *testing.T) {
	root, mirror := t.TempDir(), t.TempDir()
	const public = "https://raw.githubusercontent.com" + libraryPath
	file := filepath.Join(mirror, filepath.FromSlash(libraryPath))
	fetch := func() (catalogue.Compiled, error) {
		return catalogue.FetchLibrary(t.Context(), root, public, mirror, func(string) {})
	}
	put(t, file, describedLibrary("one"))
	first, err := fetch()
	check.Err(t, err)
	kept, err := catalogue.KeptLibrary(root, public)
	check.Err(t, err)
	if kept.SHA256 != first.SHA256 || kept.From != file || kept.Params[0].String() != "float32 [any, 2]" ||
		strings.Join(kept.Rope, "") != "1.000000e+04" {
		t.Errorf("%+v, fetched %+v", kept, first)
	}
	_, err = fetch()
	check.Err(t, err)

	put(t, file, describedLibrary("two"))
	if _, err := fetch(); fault.Of(err) != fault.BadLibrary || !strings.Contains(err.Error(), first.SHA256) ||
		!strings.Contains(err.Error(), filepath.Base(libraryPath)) {
		t.Errorf("another content: %v", err)
	}
	count := func(mirror string) (n int) {
		for l := range catalogue.Libraries(root, mirror) {
			if n++; l.ModelType != "llama" {
				t.Errorf("%+v", l)
			}
		}
		return n
	}
	if here, there := count(""), count(mirror); here != 1 || there != 2 {
		t.Errorf("%d libraries in the store, want 1; %d with the mirror, want 2", here, there)
	}
	put(t, kept.File, describedLibrary("damaged"))
	if _, err := catalogue.KeptLibrary(root, public); err == nil || count("") != 0 {
		t.Errorf("a library that has changed is used: %v", err)
	}
}

func TestFetchLibraryRefusesOtherFiles(t *testing.T) {
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
	root := t.TempDir()
	for path, want := range map[string]string{"/missing": "404", "/away": "only https is trusted",
		"/page": "is not a model library"} {
		_, err := catalogue.FetchLibrary(t.Context(), root, server.URL+path, "", func(string) {})
		if fault.Of(err) != fault.BadLibrary || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want a line with %q", path, err, want)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(root, "libraries")); len(left) > 0 {
		t.Errorf("kept: %v", left)
	}
}
