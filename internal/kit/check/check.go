// Package check has what tests of many packages need: checks of errors and texts, and files, scripts and folders. A
// failed check ends the test; Also and Has only report it.
package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Err ends the test if err is not nil.
func Err(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Also reports err if it is not nil, and the test goes on.
func Also(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Has checks that a text has some parts.
func Has(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// Read returns the content of a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	Err(t, err)
	return text
}

// Kill kills a process, on any system.
func Kill(pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Kill()
}

// Script writes a shell script to a path, of which parts are given, and returns it.
func Script(t testing.TB, text string, path ...string) string {
	t.Helper()
	at := filepath.Join(path...)
	Err(t, os.MkdirAll(filepath.Dir(at), 0o755))
	Err(t, os.WriteFile(at, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return at
}

// Tree writes files, by path, into a folder and returns it. A text that starts with "-> " is the target of a link.
func Tree(t testing.TB, root string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		Err(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if to, link := strings.CutPrefix(text, "-> "); link {
			_ = os.Remove(path)
			Err(t, os.Symlink(to, path))
		} else {
			Err(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	return root
}
