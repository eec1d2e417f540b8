package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"llmparity/internal/fault"
	"llmparity/internal/nearest"
	"llmparity/internal/sample/proc"
)

// matcher matches processes by name or command line.
//
// It excludes this program and the processes that started it (a shell, sudo, timeout, go run), which have the same text
// in their command lines, and other watching llmparity processes.
type matcher struct {
	name      string
	ancestors map[int]ancestor // by pid
	watch     string           // in the command lines of watching processes
}

type ancestor struct {
	start uint64
	line  string
}

func newMatcher(name string) *matcher {
	m := &matcher{name: strings.ToLower(name), ancestors: map[int]ancestor{}}
	program := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	m.watch = strings.ToLower(program + " watch")
	for pid := os.Getpid(); pid > 0 && m.ancestors[pid].start == 0; {
		p, err := proc.Look(pid)
		if err != nil {
			break
		}
		m.ancestors[pid] = ancestor{max(p.Start, 1), lineOf(pid)}
		pid = p.Parent
	}
	return m
}

func (m *matcher) matches(p proc.Process) bool {
	line := lineOf(p.PID)
	if !strings.Contains(line, m.name) && !strings.Contains(strings.ToLower(p.Name), m.name) {
		return false
	}
	if a, is := m.ancestors[p.PID]; is && a.start == max(p.Start, 1) {
		return false
	}
	if sameSession(p.PID) {
		for _, a := range m.ancestors { // a background part of the same script
			if a.line == line && line != "" {
				return false
			}
		}
	}
	if readsFromUs(p.PID) {
		return false
	}
	return !strings.Contains(strings.ReplaceAll(line, ".exe", ""), m.watch)
}

func lineOf(pid int) string { return strings.ToLower(strings.Join(proc.CommandLine(pid), " ")) }

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

// nothing returns the error that no process matches, with similar names.
func nothing(name string, waited time.Duration) error {
	what := fmt.Sprintf("no process with %q in its name or command line", name)
	if waited > 0 {
		what += fmt.Sprintf(", after waiting %v", waited)
	}
	do := "start it, or wait longer with --wait"
	if near := near(name); len(near) > 0 {
		do = "did you mean " + strings.Join(near, ", ") + "? else " + do
	}
	return fault.New(fault.NothingToWatch, do, "%s", what)
}

// near returns similar names of running programs.
func near(name string) []string {
	pids, _ := proc.All() // an incomplete list is good enough
	var names []string
	for _, pid := range pids {
		p, err := proc.Look(pid)
		if line := proc.CommandLine(pid); err == nil && pid != os.Getpid() && len(line) > 0 &&
			!slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	names = slices.DeleteFunc(names, func(other string) bool { return !alike(name, other) })
	for i, other := range names {
		names[i] = printable(other)
	}
	return nearest.Of(name, names, 3)
}

// alike reports whether two names share three consecutive letters.
func alike(a, b string) bool {
	const letters = 3
	a, b = strings.ToLower(a), strings.ToLower(b)
	for i := 0; i+letters <= len(a); i++ {
		if strings.Contains(b, a[i:i+letters]) {
			return true
		}
	}
	return false
}
