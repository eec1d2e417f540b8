//go:build slow

package browser

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// screened gives the test an environment without a display, and Xvfb.
func screened(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("Xvfb"); err != nil {
		t.Fatalf("%v: run scripts/setup xvfb", err)
	}
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
}

func TestBrowserHasAWindowOnAPrivateDisplay(t *testing.T) {
	screened(t)
	p, probe := fresh(t, Config{Launch: Launch{Headed: true}})
	d := p.chrome.display
	if headless, err := Call[bool](watched(t), p, `navigator.userAgent.includes("Headless")`); err != nil ||
		headless {
		t.Errorf("headless: %t, %v", headless, err)
	}
	socket := "/tmp/.X11-unix/X" + strings.TrimPrefix(d.name, ":")
	if _, err := os.Stat(socket); err != nil {
		t.Error(err)
	}
	for _, source := range probe.Attached() {
		if source.Describe().PID == d.process.PID() {
			t.Error("the display's memory is taken for the browser's")
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind: %v", socket, err)
	}
}

func TestDisplayLetsNoStrangerIn(t *testing.T) {
	screened(t)
	d, err := startDisplay(watched(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	number := strings.TrimPrefix(d.name, ":")
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
	if answer[0] != 0 { // 0 is a refusal
		t.Errorf("the display answers %d to somebody without a cookie", answer[0])
	}
	if _, err := net.Dial("tcp", "127.0.0.1:"+"60"+strings.Repeat("0", 2-len(number))+number); err == nil {
		t.Error("the display listens on the network")
	}
}

func TestDisplayThatDoesNotStartIsQuoted(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Xvfb"), []byte("#!/bin/sh\necho no such luck >&2\nexit 1\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if _, err := startDisplay(watched(t), t.TempDir()); err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("error %v, want its words", err)
	}
}
