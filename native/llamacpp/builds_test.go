package llamacpp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
)

// A plan names builds of one cache folder, so that two of them are cells.
func TestNamedBuilds(t *testing.T) {
	dir := t.TempDir()
	_, err := Find(Config{Cache: dir, Path: "simd128"})
	if err == nil || !strings.Contains(err.Error(), "scripts/setup llamacpp-simd128") {
		t.Errorf("%v, want what builds it", err)
	}
	for _, build := range []string{"llamacpp", "llamacpp-simd128"} {
		at := filepath.Join(dir, build, "current", "bin")
		check.Err(t, os.MkdirAll(at, 0o755))
		check.Err(t, os.WriteFile(filepath.Join(at, "llama-server"), []byte("#!/bin/sh\n"), 0o755))
	}
	t.Setenv("PATH", dir)
	t.Setenv(PathVariable, "")
	for name, want := range map[string]string{"": "llamacpp", "default": "llamacpp", "simd128": "llamacpp-simd128"} {
		got, err := Find(Config{Cache: dir, Path: name})
		check.Err(t, err)
		if !strings.Contains(got, string(filepath.Separator)+want+string(filepath.Separator)) {
			t.Errorf("%q is %s, want the build in %s", name, got, want)
		}
	}
}
