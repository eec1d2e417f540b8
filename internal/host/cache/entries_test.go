package cache_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
)

// filled returns a cache with entries of 1,000 bytes, each used a day after the one before.
func filled(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for i, name := range names {
		check.Tree(t, root, map[string]string{name + "/file": strings.Repeat("x", 1000)})
		used := time.Now().Add(time.Duration(i-len(names)) * 24 * time.Hour)
		check.Err(t, os.Chtimes(filepath.Join(root, name), used, used))
	}
	return root
}

func names(t *testing.T, root string) (out []string) {
	t.Helper()
	list, err := cache.List(root)
	check.Err(t, err)
	for _, e := range list {
		out = append(out, string(e.Kind)+" "+e.Name)
	}
	return out
}

func TestListSeparatesModelsAndTools(t *testing.T) {
	root := filled(t, "python/abc", "packages/b", "models/webllm/a", "models/tiny", "modellib", "packages/.unfinished")
	want := []string{"converted model packages/b", "fetched model models/webllm/a", "model libraries modellib",
		"tool python", "tool models/tiny"}
	if got := names(t, root); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	list, err := cache.List(root)
	if err != nil || slices.ContainsFunc(list, func(e cache.Entry) bool { return e.Bytes != 1000 }) {
		t.Errorf("an entry does not have 1,000 bytes: %+v %v", list, err)
	}
}

func TestMakeRoomRemovesLeastRecentlyUsedModels(t *testing.T) {
	root := filled(t, "python/abc", "packages/old", "packages/held", "models/webllm/middle", "packages/recent")
	held := whole.Share(filepath.Join(root, "packages", "held"))
	defer held.Close()
	t.Setenv(cache.LimitVariable, "3000B")
	var said []string
	check.Err(t, cache.MakeRoom(root, 1500, func(line string) { said = append(said, line) }))
	want := []string{"converted model packages/held", "tool python"}
	if got := names(t, root); !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	if len(said) != 3 || !strings.Contains(said[0], "removed packages/old (") {
		t.Errorf("said %q, want one line for each removed model, the oldest first", said)
	}
}

func TestMakeRoomKeepsWhatFits(t *testing.T) {
	root := filled(t, "packages/a", "packages/b")
	t.Setenv(cache.LimitVariable, "2500")
	check.Err(t, cache.MakeRoom(root, 500, func(line string) { t.Error(line) }))
	if got := names(t, root); len(got) != 2 {
		t.Errorf("left %q, want both models", got)
	}
}

func TestUsedModelsAreNotRemoved(t *testing.T) {
	root := filled(t, "packages/a", "packages/b")
	held := cache.Use(root, filepath.Join(root, "packages", "a"))
	list, err := cache.List(root)
	if err != nil || len(list) != 2 || list[1].Name != "packages/a" || !list[1].InUse || list[0].InUse {
		t.Fatalf("a is not the last and in use: %+v %v", list, err)
	}
	if err := list[1].Remove(); !errors.Is(err, whole.ErrBusy) {
		t.Errorf("removed while it is used: %v", err)
	}
	held.Close()
	check.Also(t, list[1].Remove())
	if outside := cache.Use(root, t.TempDir()); outside != nil {
		t.Error("a folder outside the cache is held")
	}
}

func TestMakeRoomChecksTheDisk(t *testing.T) {
	t.Setenv(cache.LimitVariable, "1TiB")
	if err := cache.MakeRoom(t.TempDir(), 1<<50, func(string) {}); fault.Of(err) != fault.DiskFull {
		t.Errorf("got %v, want a full disk", err)
	}
}

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

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{"512MiB": 512 << 20, "1.5 GiB": 3 << 29, "20": 20} {
		if got, err := cache.Size(text); err != nil || got != want {
			t.Errorf("%s: %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1GB", "9e9", "99999999999TiB"} {
		if n, err := cache.Size(text); err == nil {
			t.Errorf("%q is read as %d", text, n)
		}
	}
}
