package llamacpp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// script writes something that can be run.
func script(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho 'something else 1.0'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindInOrder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(PathVariable, "")
	t.Setenv("PATH", filepath.Join(dir, "path"))
	c := Config{Cache: filepath.Join(dir, "cache")}

	if _, err := Find(c); fault.Of(err) != fault.NoLlamaServer || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "make setup") || !strings.Contains(err.Error(), "--llama-server") {
		t.Errorf("nothing to be found: %v", err)
	}
	expect := func(want string) {
		t.Helper()
		if got, err := Find(c); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	built := script(t, c.Cache, "llamacpp", "2", "bin", "llama-server")
	script(t, c.Cache, "llamacpp", "3", "bin", "llama-server")
	if path, err := Find(c); err == nil {
		t.Errorf("a build that the set-up's link doesn't name was found: %s", path)
	}
	if err := os.Symlink("2", filepath.Join(c.Cache, "llamacpp", "current")); err != nil {
		t.Fatal(err)
	}
	expect(built)
	expect(script(t, dir, "path", "llama-server"))
	named := script(t, dir, "named", "server")
	t.Setenv(PathVariable, named)
	expect(named)
	c.Path = script(t, dir, "configured", "server")
	expect(c.Path)

	// What was named and is not there is an error, though others could be found.
	c.Path = filepath.Join(dir, "missing")
	if _, err := Find(c); fault.Of(err) != fault.NoLlamaServer || !strings.Contains(err.Error(), c.Path) {
		t.Errorf("a missing one that was named: %v", err)
	}
}

func TestSomethingElse(t *testing.T) {
	l := New(Config{Path: script(t, t.TempDir(), "llama-server")})
	err := l.Check(t.Context(), randomModel(t, ascii()))
	if fault.Of(err) != fault.NoLlamaServer || engine.ClassOf(err) != record.SetUp ||
		!strings.Contains(err.Error(), "something else") {
		t.Errorf("a program that is no llama-server: %v", err)
	}
}
