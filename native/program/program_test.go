package program_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/native/program"
)

func TestFindInOrder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", filepath.Join(dir, "path"))
	t.Setenv("LLMPARITY_TEST_PROGRAM", "")
	p := program.Program{Names: []string{"new", "old"}, Build: "x/current", Flag: "--x",
		Variable: "LLMPARITY_TEST_PROGRAM", Kind: fault.NoOllama, Do: "build one"}
	given, cache := "", filepath.Join(dir, "cache")
	refused := func(words string) {
		t.Helper()
		_, err := p.Find(given, cache)
		enginetest.OneLine(t, err, fault.NoOllama, record.SetUp, words)
	}
	check.Script(t, "", cache, "x", "1", "new") // the link to the current build does not name it
	refused("new not found on PATH or in the cache; build one")
	find := func(want string) {
		t.Helper()
		if got, err := p.Find(given, cache); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	find(check.Script(t, "", dir, "path", "old")) // least preferred first
	built := check.Script(t, "", cache, "x", "2", "new")
	check.Err(t, os.Symlink("2", filepath.Join(cache, "x", "current")))
	find(built)
	find(check.Script(t, "", dir, "path", "new"))
	named := check.Script(t, "", dir, "named")
	t.Setenv("LLMPARITY_TEST_PROGRAM", named)
	find(named)
	given = check.Script(t, "", dir, "given")
	find(given)
	given = filepath.Join(dir, "missing") // the user's choice is an error even if others could be found
	refused("--x: " + given + " cannot be run")
}

func TestKnownUntilFileChanges(t *testing.T) {
	path := check.Script(t, "one", t.TempDir(), "x")
	var k program.Known[string]
	looks := 0
	look := func(sum string) (string, error) { looks++; return sum, nil }
	first, err := k.Of(path, look)
	again, err2 := k.Of(path, look)
	if err = errors.Join(err, err2); err != nil || first != again || len(first) != 64 || looks != 1 {
		t.Fatalf("%q, then %q, after %d looks: %v", first, again, looks, err)
	}
	check.Err(t, os.WriteFile(path, []byte("another"), 0o700))
	failure := errors.New("it says nothing")
	if _, err := k.Of(path, func(string) (string, error) { return "", failure }); !errors.Is(err, failure) {
		t.Errorf("changed file: %v", err)
	}
	if other, err := k.Of(path, look); err != nil || other == first || looks != 2 {
		t.Errorf("changed file: %q after %d looks, %v", other, looks, err)
	}
	if _, err := k.Of(path+"x", look); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}
