//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"llmparity/internal/fault"
)

// Opening a pipe would block, and a device must not be replaced.
func TestPipesAndDevicesAreRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		kind fault.Kind
	}{
		{[]string{"model", "info", "pipe"}, fault.BadModel},
		{[]string{"model", "info", "pipe.gguf"}, fault.BadModel},
		{[]string{"model", "info", os.DevNull}, fault.BadModel},
		{[]string{"model", "convert", "pipe.gguf", "--to", "gguf"}, fault.BadModel},
		{[]string{"model", "convert", "pipe.gguf", "--to", "webllm"}, fault.BadModel},
		{[]string{"run", "-q", "--model", "pipe.gguf"}, fault.BadModel},
		{[]string{"run", "-q", "--model", "pipe"}, fault.BadModel},
		{[]string{"run", "-q", "--model", os.DevNull}, fault.BadModel},
		{[]string{"model", "random", "-o", "pipe.gguf"}, fault.Unwritable},
		{[]string{"model", "random", "-o", "null"}, fault.Unwritable},
	} {
		cmd := program(t, c.args...)
		for _, name := range []string{"pipe", "pipe.gguf"} {
			check(t, syscall.Mkfifo(filepath.Join(cmd.Dir, name), 0o600))
		}
		check(t, os.Symlink(os.DevNull, filepath.Join(cmd.Dir, "null")))
		refusal(t, cmd, c.kind, "regular file")
		if info, err := os.Stat(filepath.Join(cmd.Dir, "pipe.gguf")); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			t.Errorf("%v: the pipe is gone: %v", c.args, err)
		}
		if info, err := os.Lstat(filepath.Join(cmd.Dir, "null")); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%v: the link is gone: %v", c.args, err)
		}
	}
}
