package cache_test

import (
	"os"
	"path/filepath"
	"testing"

	"llmparity/internal/cache"
	"llmparity/internal/fault"
)

func TestDir(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"LLMPARITY_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c"},
		{map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/llmparity"},
		{map[string]string{"HOME": "/h"}, "/h/.cache/llmparity"},
		{nil, filepath.Join(os.TempDir(), ".cache/llmparity")},
	} {
		if got := cache.Dir(func(name string) string { return c.env[name] }); got != filepath.FromSlash(c.want) {
			t.Errorf("%v: %s, want %s", c.env, got, c.want)
		}
	}
}

func TestMkdirAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cache.MkdirAll(filepath.Join(file, "cache")); fault.Of(err) != fault.Unwritable {
		t.Errorf("a folder below a file: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := cache.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Errorf("not made: %v", err)
	}
}
