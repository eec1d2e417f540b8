package watch

import (
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"llmparity/internal/host/sample/proc"
)

// matcher returns whether a process matches a name by its own name or command line.
//
// It excludes this program and the processes that started it (a shell, sudo, timeout, go run), which have the same text
// in their command lines, what reads our output, and other watching llmparity processes.
func matcher(name string) func(proc.Process) bool {
	name = strings.ToLower(name)
	program := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	watching := strings.ToLower(program + " watch")
	ancestors := proc.Ancestors()
	return func(p proc.Process) bool {
		line := strings.ToLower(strings.Join(proc.CommandLine(p.PID), " "))
		if !strings.Contains(line, name) && !strings.Contains(strings.ToLower(p.Name), name) {
			return false
		}
		start, ancestor := ancestors[p.PID]
		return !(ancestor && start == p.Start) && !readsFromUs(p.PID) &&
			!strings.Contains(strings.ReplaceAll(line, ".exe", ""), watching)
	}
}

// watches reports whether a process is a watching llmparity.
func watches(p proc.Process) bool {
	program := func(path string) string { return strings.TrimSuffix(filepath.Base(path), ".exe") }
	line := proc.CommandLine(p.PID)
	return len(line) > 1 && line[1] == "watch" && program(line[0]) == program(os.Args[0])
}

// printable replaces control characters, which could command a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
