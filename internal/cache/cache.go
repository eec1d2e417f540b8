// Package cache locates the folder for what is expensive to fetch or build: runtimes, Python environments, model
// libraries. Everything in it can be deleted at any time.
package cache

import (
	"os"
	"path/filepath"

	"llmparity/internal/fault"
)

// Variable is the environment variable that names the folder.
const Variable = "LLMPARITY_CACHE"

// Dir returns the cache folder: $LLMPARITY_CACHE, else $XDG_CACHE_HOME/llmparity, else ~/.cache/llmparity. The setup
// script does the same, so macOS and Windows have no special folder.
func Dir(getenv func(string) string) string {
	if dir := getenv(Variable); dir != "" {
		return dir
	}
	if dir := getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "llmparity")
	}
	return filepath.Join(home(getenv), ".cache", "llmparity")
}

// home returns the home folder, or the temporary folder for a service without a home.
func home(getenv func(string) string) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if dir := getenv(name); dir != "" {
			return dir
		}
	}
	return os.TempDir()
}

// MkdirAll creates dir in the cache, with its parents.
func MkdirAll(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Wrap(fault.Unwritable, err, "make it writable or name another cache folder in "+Variable,
			"cache folder %s", dir)
	}
	return nil
}
