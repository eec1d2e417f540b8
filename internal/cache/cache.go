// Package cache names the folder that keeps what is costly to fetch or build: runtimes, Python environments, model
// libraries. Everything in it can be deleted at any time.
package cache

import (
	"os"
	"path/filepath"

	"llmparity/internal/fault"
)

// Variable names the folder in the environment.
const Variable = "LLMPARITY_CACHE"

// Dir is the cache folder: $LLMPARITY_CACHE, else $XDG_CACHE_HOME/llmparity, else ~/.cache/llmparity. The set-up
// script, written in shell, says the same; so the system's own custom for caches elsewhere than on Linux is not
// followed.
func Dir(getenv func(string) string) string {
	if dir := getenv(Variable); dir != "" {
		return dir
	}
	if dir := getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "llmparity")
	}
	return filepath.Join(home(getenv), ".cache", "llmparity")
}

// home falls back on the temporary folder: a service without a home can still build what it needs.
func home(getenv func(string) string) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if dir := getenv(name); dir != "" {
			return dir
		}
	}
	return os.TempDir()
}

// MkdirAll makes dir, in the cache, and what is missing above it.
func MkdirAll(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Wrap(fault.Unwritable, err, "make it writable or name another cache folder in "+Variable,
			"cache folder %s", dir)
	}
	return nil
}
