package container

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// script runs a command in a container until its standard input ends. That is when the program that started it is gone,
// by whatever way: a container's processes do not end with those that started them. The command gets a temporary folder
// of its own, if the container can make one.
const script = `exec 3<&0
dir=$(mktemp -d 2>/dev/null) && export TMPDIR="$dir"
"$@" </dev/null 3<&- &
child=$!
(while read -r line; do :; done <&3; kill "$child"; sleep 10; kill -9 "$child") 2>/dev/null 3<&3 &
reader=$!
exec 3<&-
wait "$child"
code=$?
kill "$reader" 2>/dev/null
[ -z "$dir" ] || rm -rf "$dir"
exit $code`

// Exec returns the command that runs another one in the container, with the variables that are named. Their values are
// those of the returned command's environment when it starts. It needs a shell in the container. The command ends when
// its standard input, a pipe that the caller holds, is closed.
func (c *Container) Exec(argv []string, variables ...string) *exec.Cmd {
	return c.Pass(append([]string{"sh", "-c", script, "sh"}, argv...), variables...)
}

// Pass is Exec for a command that reads its standard input, and ends by itself when that ends. It needs no shell.
func (c *Container) Pass(argv []string, variables ...string) *exec.Cmd {
	args := []string{"exec", "-i"}
	for _, name := range variables {
		args = append(args, "-e", name)
	}
	return exec.Command(c.Program, append(append(args, c.ID), argv...)...)
}

// Carries reports whether a process only carries a command into the container: the container's program, what that
// starts, and the script's shells. Their memory is not the command's.
func Carries(line []string) bool {
	if len(line) == 0 {
		return false
	}
	carriers := append([]string{"conmon", "runc", "crun", "containerd-shim", "containerd-shim-runc-v2"}, programs...)
	program := strings.TrimSuffix(filepath.Base(line[0]), ".exe")
	return slices.Contains(carriers, program) || slices.Contains(line, script)
}
