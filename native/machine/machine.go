// Package machine says what engines outside the browser compute on.
//
// It knows the processor by its name; a GPU that a server uses is the server's to tell.
package machine

import (
	"bufio"
	"os"
	"runtime"
	"strings"
)

// CPU is the processor's name where the system tells it in a file, else its architecture.
func CPU() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH // ARM kernels give no name
}
