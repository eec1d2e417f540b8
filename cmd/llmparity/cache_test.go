package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
)

// `cache list` and `cache prune` on a cache with an old and a new model, a library and a tool.
func TestCache(t *testing.T) {
	root := t.TempDir()
	t.Setenv(cache.Variable, root)
	for name, days := range map[string]int{"packages/old": 40, "models/webllm/new": 1, "modellib": 40, "python": 40} {
		dir, used := filepath.Join(root, name), time.Now().AddDate(0, 0, -days)
		put(t, dir, "file", strings.Repeat("x", 3<<20))
		check(t, os.Chtimes(dir, used, used))
	}
	for _, c := range []struct {
		args string
		code fault.Kind
		want string
	}{
		{"cache list", "", "models 6.0 MiB of at most 20.00 GiB, libraries and tools 6.0 MiB"},
		{"cache prune", fault.Usage, "--older-than 30d"},
		{"cache prune --older-than soon", fault.Usage, `"soon" is not an age`},
		{"cache prune --larger-than much", fault.Usage, `"much" is not a size`},
		{"cache prune --all --older-than 1d", fault.Usage, "cannot be combined"},
		{"cache prune --older-than 30d --larger-than 1GiB", "", "0.0 MiB freed"},
		{"cache prune --older-than 30d", "", "removed  packages/old  3.0 MiB"},
		{"cache list", "", "models 3.0 MiB"},
		{"cache prune --all", "", "6.0 MiB freed"},
		{"cache prune --tools", "", "removed  python"},
		{"cache list --json", "", "[]"},
	} {
		out, errs, code := called(strings.Fields(c.args)...)
		if code != c.code.ExitCode() || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: exit code %d, %q not in:\n%s%s", c.args, code, c.want, out, errs)
		}
	}
}
