package cache_test

import (
	"os"
	"path/filepath"
	"testing"

	"llmparity/internal/cache"
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
