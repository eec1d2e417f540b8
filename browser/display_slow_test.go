//go:build slow

package browser

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestHeadedBrowserOnPrivateDisplay(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "") // it needs Xvfb: scripts/setup xvfb
	p, probe := fresh(t, Config{Launch: Launch{Headed: true}})
	d := on(p).Display
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
