package byhand

import (
	"os/exec"
	"runtime"
)

// Open opens an address in the person's usual browser.
func Open(address string) error {
	command := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	return exec.Command(command[0], append(command[1:], address)...).Start()
}
