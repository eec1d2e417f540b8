package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/nearest"
	"llmparity/internal/sample/proc"
)

// matcher tells whose name or command line holds a text.
//
// This very program has the text in its command line, and so have those that it was started by: a shell, sudo, timeout, go run. Neither
// they nor others that watch are meant, nor what was started by `… watch` for them.
type matcher struct {
	name      string
	ancestors map[int]uint64 // by pid: their start
	watch     string         // what is in the command line of everybody that watches
}

func newMatcher(name string) *matcher {
	m := &matcher{name: strings.ToLower(name), ancestors: map[int]uint64{}}
	program := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	m.watch = strings.ToLower(program + " watch")
	for pid := os.Getpid(); pid > 0 && m.ancestors[pid] == 0; {
		p, err := proc.Look(pid)
		if err != nil {
			break
		}
		m.ancestors[pid] = max(p.Start, 1)
		pid = p.Parent
	}
	return m
}

func (m *matcher) matches(p proc.Process) bool {
	line := strings.ToLower(strings.Join(proc.CommandLine(p.PID), " "))
	if !strings.Contains(line, m.name) && !strings.Contains(strings.ToLower(p.Name), m.name) {
		return false
	}
	if start, is := m.ancestors[p.PID]; is && start == max(p.Start, 1) {
		return false
	}
	return !strings.Contains(strings.ReplaceAll(line, ".exe", ""), m.watch)
}

// nothing says that nobody came, and who may have been meant.
func nothing(name string, waited time.Duration) error {
	what := fmt.Sprintf("no process has %q in its name or command line", name)
	if waited > 0 {
		what += fmt.Sprintf(", and none came in %v", waited)
	}
	do := "start it first, or wait longer with --wait"
	if near := near(name); len(near) > 0 {
		do = "there are " + strings.Join(near, ", ") + "; " + do
	}
	return fault.New(fault.NothingToWatch, do, "%s", what)
}

// near gives the programs that run and are called alike.
func near(name string) []string {
	pids, _ := proc.All() // what was listed until an error will do
	var names []string
	for _, pid := range pids {
		p, err := proc.Look(pid)
		if line := proc.CommandLine(pid); err == nil && pid != os.Getpid() && len(line) > 0 && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return nearest.Of(name, names, 3)
}
