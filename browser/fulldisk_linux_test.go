package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"llmparity/browser/driver"
	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// small mounts a disk of some bytes for temporary files.
func small(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = filepath.Join(os.TempDir(), "d") // short, for Chrome's sockets
	check.Err(t, os.Mkdir(dir, 0o700))
	t.Cleanup(func() { check.Err(t, os.Remove(dir)) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small disk can't be mounted: %v", err)
	}
	t.Cleanup(func() { check.Err(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// fill fills a disk.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "fill"))
	check.Err(t, err)
	defer f.Close()
	for part := make([]byte, 1<<16); err == nil; {
		_, err = f.Write(part)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// Only errors that a full disk explains become its own, and only while it is full.
func TestFullDiskExplainsVagueErrors(t *testing.T) {
	dir := small(t, "4m")
	c := &driver.Process{Scratch: filepath.Join(dir, "profile"), Ctx: t.Context()}
	check.Err(t, os.Mkdir(c.Scratch, 0o700))
	vague := engine.Fail(record.Other, "in the page: UnknownError: Failed to execute 'open' on 'CacheStorage'")
	if err := c.OnFullDisk(vague); !errors.Is(err, vague) || fault.Of(err) == fault.DiskFull {
		t.Errorf("with space: %v", err)
	}
	fill(t, dir)
	if err := c.OnFullDisk(fmt.Errorf("loading: %w", vague)); fault.Of(err) != fault.DiskFull ||
		!strings.Contains(err.Error(), dir+" is full: loading: in the page: UnknownError") {
		t.Errorf("full: %v", err)
	}
	for _, other := range []error{nil, engine.Fail(record.OOM, "out of memory"), context.Canceled,
		fault.New(fault.NoF16, "", "no float16")} {
		if err := c.OnFullDisk(other); !errors.Is(err, other) || fault.Of(err) == fault.DiskFull {
			t.Errorf("%v became %v", other, err)
		}
	}
}
