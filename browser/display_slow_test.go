//go:build slow

package browser

import (
	"errors"
	"os"
	"os/exec"
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

func TestHeadedBrowserOnPrivateDisplay(t *testing.T) {
	screened(t)
	p, probe := fresh(t, Config{Launch: Launch{Headed: true}})
	d := p.chrome.display
	if headless, err := Call[bool](watched(t), p, `navigator.userAgent.includes("Headless")`); err != nil ||
		headless {
		t.Errorf("headless: %t, %v", headless, err)
	}
	socket := "/tmp/.X11-unix/X" + strings.TrimPrefix(d.Name, ":")
	if _, err := os.Stat(socket); err != nil {
		t.Error(err)
	}
	for _, source := range probe.Attached() {
		if source.Describe().PID == d.PID() {
			t.Error("the display's memory counts as the browser's")
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s still exists: %v", socket, err)
	}
}
