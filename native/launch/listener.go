package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/sample/proc"
)

// forwarders only pass on answers of another process; their memory is not the server's.
var forwarders = []string{"ssh", "sshd", "docker-proxy", "kubectl", "socat", "rootlesskit", "slirp4netns", "nginx",
	"haproxy", "caddy", "envoy"}

// Listener finds the process that serves an address. The error says why its memory cannot be sampled.
func Listener(ctx context.Context, hostPort string, here bool) (pid int, program string, err error) {
	if !here {
		return 0, "", errors.New("it is on another machine")
	}
	pid, err = proc.PIDOfListener(ctx, hostPort)
	if err != nil {
		return 0, "", err
	}
	if pid == os.Getpid() {
		return 0, "", errors.New("the server is part of this program")
	}
	program = ProgramOf(pid, proc.CommandLine(pid))
	if slices.Contains(forwarders, program) {
		return 0, "", fmt.Errorf("process %d (%s) listens there and forwards to another process", pid, program)
	}
	return pid, program, nil
}

// ProgramOf returns the name of a process's program; its pid if that is not visible.
func ProgramOf(pid int, line []string) string {
	if len(line) == 0 {
		return fmt.Sprint(pid)
	}
	return filepath.Base(strings.Fields(line[0] + " ")[0])
}
