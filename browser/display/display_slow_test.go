//go:build slow

package display

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// screened removes the display from the environment, and checks for Xvfb.
func screened(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("Xvfb"); err != nil {
		t.Fatalf("%v: run scripts/setup xvfb", err)
	}
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
}

func TestDisplayNeedsCookie(t *testing.T) {
	screened(t)
	d, err := start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	number := strings.TrimPrefix(d.Name, ":")
	line, err := net.Dial("unix", "/tmp/.X11-unix/X"+number)
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	// Least significant byte first, protocol 11.0, no method and no cookie.
	if _, err := line.Write([]byte{'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 1)
	if _, err := line.Read(answer); err != nil {
		t.Fatal(err)
	}
	if answer[0] != 0 { // 0: refused
		t.Errorf("the display answers %d without a cookie", answer[0])
	}
	if _, err := net.Dial("tcp", "127.0.0.1:"+"60"+strings.Repeat("0", 2-len(number))+number); err == nil {
		t.Error("the display listens on the network")
	}
}

func TestFailedDisplayIsQuoted(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Xvfb"), []byte("#!/bin/sh\necho no such luck >&2\nexit 1\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if _, err := start(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("%v, want its output", err)
	}
}
