// Package store carries what pages have stored from one browser's profile to the next one's, and measures it. Only the
// storage is carried: caches of shaders and code would make another launch than one with an empty profile.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"llmparity/internal/host/child"
	"llmparity/internal/record"
)

// Folders are those of a profile in which a kind of browser keeps what pages store, relative to the profile. Some may
// be files.
type Folders []string

// Move moves them from one profile to another, on the same disk.
func (f Folders) Move(from, to string) error {
	for _, name := range f {
		old, moved := filepath.Join(from, name), filepath.Join(to, name)
		if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(moved), 0o700); err != nil {
			return fmt.Errorf("keeping what the page has stored: %w", err)
		}
		if err := os.Rename(old, moved); err != nil {
			return fmt.Errorf("keeping what the page has stored: %w", err)
		}
	}
	return nil
}

// Size is the number of bytes in their files, written to the disk or still on the way there.
func (f Folders) Size(profile string) (bytes int64) {
	for _, name := range f {
		_ = filepath.WalkDir(filepath.Join(profile, name), func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // the browser removes and renames files meanwhile
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				bytes += info.Size()
			}
			return nil
		})
	}
	return bytes
}

// New makes a temporary folder for what is carried. The caller removes it.
func New() (string, error) { return child.Scratch("store") }

// Functions of the page, which assets/page/storage.js has.
const (
	CallUsage = "llmparityPage.usage()"
	CallHalve = "llmparityPage.halve(%v)" // whether files are written in place
)

// Usage is what the page reports about its storage.
type Usage struct {
	Usage, Quota float64
	Files        map[string]int // by kind of storage
	CrossOrigin  bool           // an extension offers it
}

// In is the kind of storage that has files, and their number. It is the one that was asked for, if that has some.
func (u Usage) In(asked string) (kind string, files int) {
	kinds := []string{asked, record.CacheAPI, record.IndexedDB, record.OPFS}
	if i := slices.IndexFunc(kinds, func(k string) bool { return u.Files[k] > 0 }); i >= 0 {
		return kinds[i], u.Files[kinds[i]]
	}
	return record.NoStorage, 0
}
