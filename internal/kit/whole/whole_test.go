//go:build unix

package whole_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/whole"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func TestWriteIsAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	check.Err(t, whole.Write(path, text("one")))
	broken := errors.New("broken")
	err := whole.Write(path, func(w io.Writer) error {
		_ = text("two")(w)
		return broken
	})
	if got, _ := os.ReadFile(path); !errors.Is(err, broken) || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestWriteKeepsDevices(t *testing.T) {
	dir := t.TempDir()
	fifo, link, folder := filepath.Join(dir, "fifo"), filepath.Join(dir, "link"), filepath.Join(dir, "folder")
	check.Err(t, errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink(os.DevNull, link),
		os.Mkdir(folder, 0o755)))
	for _, path := range []string{fifo, link, folder} {
		before, err := os.Lstat(path)
		check.Err(t, err)
		if err := whole.Write(path, text("x")); err == nil {
			t.Errorf("%s was written", path)
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s: %v, was %v", path, after, before)
		}
	}
}

func TestSweepKeepsLockedFiles(t *testing.T) {
	dir := t.TempDir()
	check.Err(t, os.WriteFile(filepath.Join(dir, ".llmparity-writing-left"), nil, 0o600))
	err := whole.Write(filepath.Join(dir, "slow"), func(w io.Writer) error {
		if err := whole.Write(filepath.Join(dir, "fast"), text("fast")); err != nil {
			return err
		}
		return text("slow")(w)
	})
	check.Err(t, err)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != "fast" || entries[1].Name() != "slow" {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestSweepKeepsLockedFolders(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "new")
	mine, err := whole.NewFolder(parent)
	check.Err(t, err)
	left := filepath.Join(parent, ".llmparity-writing-left")
	check.Err(t, os.MkdirAll(filepath.Join(left, "inside"), 0o755))
	if err := whole.Write(filepath.Join(parent, "f"), text("x")); err != nil { // sweeps
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s was left: %v", left, err)
	}
	if info, err := os.Stat(mine.Path); err != nil || !info.IsDir() {
		t.Errorf("folder in use: %v", err)
	}
	mine.Remove()
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := whole.Lock(t.Context(), path, func() { t.Error("waits for a lock that is free") })
	check.Err(t, err)
	ended := errors.New("ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := whole.Lock(ctx, path, func() { cancel(ended) }); !errors.Is(err, ended) {
		t.Errorf("cancelled wait: %v", err)
	}
	again, err := whole.Lock(t.Context(), path, unlock)
	check.Err(t, err)
	again()
}

func TestTryLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := whole.TryLock(path)
	check.Err(t, err)
	if _, err := whole.TryLock(path); !errors.Is(err, whole.ErrBusy) {
		t.Errorf("locked twice: %v", err)
	}
	_ = held.Close()
	if held, err = whole.TryLock(path); err != nil {
		t.Fatal(err)
	}
	_ = held.Close()
	if _, err := whole.TryLock(filepath.Join(path, "none")); err == nil || errors.Is(err, whole.ErrBusy) {
		t.Errorf("below a file: %v", err)
	}
}

func TestHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if n := whole.Holder(path); n != 0 {
		t.Errorf("no file: process %d holds it", n)
	}
	held, err := whole.Hold(path)
	check.Err(t, err)
	if n := whole.Holder(path); n != os.Getpid() {
		t.Errorf("process %d holds it, want %d", n, os.Getpid())
	}
	_ = held.Close()
	if n := whole.Holder(path); n != 0 {
		t.Errorf("released: process %d holds it", n)
	}
}

// A folder never takes the place of another one, and the link leads to the last.
func TestNextFreeAndLink(t *testing.T) {
	root := t.TempDir()
	for _, want := range []string{"run", "run-2", "run-3"} {
		from := filepath.Join(root, "new")
		check.Err(t, os.Mkdir(from, 0o755))
		check.Err(t, os.WriteFile(filepath.Join(from, "name"), []byte(want), 0o644))
		dir, err := whole.NextFree(from, filepath.Join(root, "run"))
		check.Err(t, err)
		check.Err(t, whole.Link(filepath.Base(dir), filepath.Join(root, "latest")))
		got := string(check.Read(t, filepath.Join(root, "latest", "name")))
		if filepath.Base(dir) != want || got != want {
			t.Errorf("%s, and latest leads to %s, want %s", dir, got, want)
		}
	}
	if _, err := whole.NextFree(filepath.Join(root, "none"), filepath.Join(root, "run")); err == nil {
		t.Error("a folder that is not there has a place")
	}
}
