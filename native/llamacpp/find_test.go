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

func TestSomethingElse(t *testing.T) {
	l := New(Config{Path: script(t, t.TempDir(), "llama-server")})
	err := l.Check(t.Context(), randomModel(t, ascii()))
	if fault.Of(err) != fault.NoLlamaServer || engine.ClassOf(err) != record.SetUp ||
		!strings.Contains(err.Error(), "something else") {
		t.Errorf("a program that is no llama-server: %v", err)
	}
}
