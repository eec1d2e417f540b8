// Package cache locates the folder for what is expensive to fetch or build: runtimes, Python environments, model
// libraries. Everything in it can be deleted at any time.
package cache

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"llmparity/internal/kit/fault"
)

// Variable is the environment variable that names the folder.
const Variable = "LLMPARITY_CACHE"

// Dir returns the cache folder: $LLMPARITY_CACHE, else $XDG_CACHE_HOME/llmparity, else ~/.cache/llmparity. The setup
// script does the same, so macOS and Windows have no special folder.
func Dir(getenv func(string) string) string {
	home := cmp.Or(getenv("HOME"), getenv("USERPROFILE"), os.TempDir()) // a service may have no home
	caches := cmp.Or(getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	return cmp.Or(getenv(Variable), filepath.Join(caches, "llmparity"))
}

// MkdirAll creates dir in the cache, with its parents.
func MkdirAll(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Wrap(fault.Unwritable, err, "make it writable or name another cache folder in "+Variable,
			"cache folder %s", dir)
	}
	return nil
}

// HashFile returns the SHA-256 of a file.
func HashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hashing: %w", err)
	}
	defer f.Close()
	return Hash(f, path)
}

// Hash returns the SHA-256 of a file that is open.
func Hash(from io.Reader, path string) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, from); err != nil {
		return "", fmt.Errorf("hashing %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
