//go:build slow

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"llmparity/browser/webllm"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/damage"
)

// One fault of each kind, in the last tensor that can have it, and one that nothing finds.
func TestScoresShowEachKindOfFaultInWebLLM(t *testing.T) {
	t.Parallel()
	in := intactModel(t)
	all := in.All()
	slices.Reverse(all)
	for _, kind := range damage.Kinds() {
		of := func(f damage.Fault) bool { return f.Kind == kind && f.Hidden == "" }
		f := all[slices.IndexFunc(all, of)]
		if apart := inWebLLM(t, in, f); apart <= damage.Tolerance {
			t.Errorf("%s in %s: scores are %.5f apart", f.Kind, f.Tensor, apart)
		}
	}
	f := all[slices.IndexFunc(all, func(f damage.Fault) bool { return f.Hidden != "" })]
	if apart := inWebLLM(t, in, f); apart > damage.Tolerance {
		t.Errorf("%s in %s: scores are %.5f apart, although %s", f.Kind, f.Tensor, apart, f.Hidden)
	}
}

// A fault in a kernel of the model library. The weights and all checksums are right.
func TestScoresShowFaultsOfKernelsInWebLLM(t *testing.T) {
	t.Parallel()
	in := intactModel(t)
	dir := madePackage(t, "whole", tiny.WriteFile)
	library := []byte(readFile(t, filepath.Join(dir, "lib.wasm")))
	for _, c := range []struct{ name, kernel, right, wrong string }{
		{"nothing", "attend_decode_kernel", "* 16i)) - 16i);", "* 16i)) - 16i);"},
		{"a decode step that skips the last key", "attend_decode_kernel", "* 16i)) - 16i);", "* 16i)) - 17i);"},
		{"a prompt's keys stored one position late", "kv_append_kernel", "= key_ptr[((i32(blockIdx.y) *",
			"= key_ptr[((max(i32(blockIdx.y) - 1i, 0i) *"},
	} {
		patched := filepath.Join(t.TempDir(), "lib.wasm")
		check(t, os.WriteFile(patched, withShader(t, library, c.kernel, c.right, c.wrong), 0o644))
		m, err := models.OpenPackage(dir, "whole", enginetest.Context)
		check(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		w := webLLM(webllm.Config{Kernels: webllm.SoftwareKernels, Library: patched})
		apart := enginetest.ScoresApart(t, load(t, ctx, w, m), in)
		t.Logf("%s: scores are %.2g apart", c.name, apart)
		if (apart > damage.Tolerance) != (c.right != c.wrong) {
			t.Errorf("%s: scores are %.5f apart", c.name, apart)
		}
	}
}

// withShader replaces a part of a kernel's shader, whose length stays the same: indentation makes room.
func withShader(t *testing.T, library []byte, kernel, right, wrong string) []byte {
	t.Helper()
	at := bytes.Index(library, []byte("\n// Function: "+kernel+"\n"))
	if at < 0 {
		t.Fatalf("the library has no %s", kernel)
	}
	end := at + bytes.IndexByte(library[at:], 0)
	shader := library[at : end-8] // what is before the NUL may belong to a length
	if n := bytes.Count(shader, []byte(right)); n != 1 {
		t.Fatalf("%s has %d of %q", kernel, n, right)
	}
	patched := bytes.Replace(shader, []byte(right), []byte(wrong), 1)
	for len(patched) > len(shader) {
		patched = bytes.Replace(patched, []byte("\n  "), []byte("\n "), 1)
	}
	patched = append(patched, bytes.Repeat([]byte{' '}, len(shader)-len(patched))...)
	return slices.Concat(library[:at], patched, library[end-8:])
}
