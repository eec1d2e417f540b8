//go:build slow

package display

import (
	"net"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
)

func TestDisplayNeedsCookie(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "") // it needs Xvfb: scripts/setup xvfb
	d, err := start(t.Context(), t.TempDir())
	check.Err(t, err)
	defer d.Close()
	number := strings.TrimPrefix(d.Name, ":")
	line, err := net.Dial("unix", "/tmp/.X11-unix/X"+number)
	check.Err(t, err)
	defer line.Close()
	// Least significant byte first, protocol 11.0, no method and no cookie.
	_, err = line.Write([]byte{'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	check.Err(t, err)
	answer := make([]byte, 1)
	_, err = line.Read(answer)
	check.Err(t, err)
	if answer[0] != 0 { // 0: refused
		t.Errorf("the display answers %d without a cookie", answer[0])
	}
	if _, err := net.Dial("tcp", "127.0.0.1:"+"60"+strings.Repeat("0", 2-len(number))+number); err == nil {
		t.Error("the display listens on the network")
	}
}
