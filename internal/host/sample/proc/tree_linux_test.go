package proc_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/host/sample/proc/proctest"
	"llmparity/internal/kit/check"
)

// shell is a real process that starts others on request.
type shell struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func newShell(t testing.TB) *shell {
	s := &shell{t: t, cmd: exec.Command("sh")}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.in, s.out = proctest.Start(t, s.cmd)
	t.Cleanup(func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // the shell and what it started
		_ = s.cmd.Wait()                                      // killed, as it should be
	})
	return s
}

// start starts something in the background, and gives its pid.
func (s *shell) start(command string) int {
	s.t.Helper()
	fmt.Fprintf(s.in, "%s >/dev/null & echo $!\n", command)
	if !s.out.Scan() {
		s.t.Fatal("the shell has ended")
	}
	pid, err := strconv.Atoi(s.out.Text())
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

// seen counts the sources that a tree has attached, by role.
type seen struct{ roles sync.Map }

func (s *seen) of(role string) int32 { return s.count(role).Load() }

func (s *seen) count(role string) *atomic.Int32 {
	n, _ := s.roles.LoadOrStore(role, new(atomic.Int32))
	return n.(*atomic.Int32)
}

func (s *seen) attach(src sample.Source) func() {
	n := s.count(src.Describe().Role)
	n.Add(1)
	return func() { n.Add(-1) }
}

// byArgument uses the command line as the role.
func byArgument(line []string) string {
	if len(line) == 0 {
		return ""
	}
	return filepath.Base(line[0]) + " " + strings.Join(line[1:], " ")
}

func follow(t *testing.T, pid int, out *seen) *proc.Tree {
	t.Helper()
	tree, err := proc.NewTree(pid, byArgument, out.attach,
		true)
	check.Err(t, err)
	t.Cleanup(tree.Close)
	return tree
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func TestTreeFollowsDescendants(t *testing.T) {
	sh, out := newShell(t), &seen{}
	first := sh.start("sleep 601")
	until(t, "it is a sleep", func() bool { p, err := proc.Look(first); return err == nil && p.Name == "sleep" })
	tree := follow(t, sh.cmd.Process.Pid, out)
	if !slices.Contains(tree.PIDs(), first) || !slices.Contains(tree.PIDs(), sh.cmd.Process.Pid) ||
		out.of("sleep 601") != 3 {
		t.Fatalf("at once: %v, %d sources", tree.PIDs(), out.of("sleep 601"))
	}
	nested := sh.start(`sh -c 'sleep 602 & sleep 603'`)
	until(t, "grandchildren are sampled", func() bool { return out.of("sleep 602") == 3 && out.of("sleep 603") == 3 })

	// Who loses its parent is still followed, wherever it hangs then.
	check.Err(t, syscall.Kill(nested, syscall.SIGKILL))
	until(t, "the parent has ended", func() bool { return !slices.Contains(tree.PIDs(), nested) })
	tree.Look(t.Context())
	if out.of("sleep 602") != 3 {
		t.Error("an orphan is not followed")
	}
	check.Err(t, syscall.Kill(first, syscall.SIGKILL))
	until(t, "the first one is let go of", func() bool { return out.of("sleep 601") == 0 })
	if slices.Contains(tree.PIDs(), first) {
		tree.Look(t.Context())
		if slices.Contains(tree.PIDs(), first) {
			t.Error("an ended process is still listed")
		}
	}
	tree.Close()
	for role, n := range out.roles.Range {
		if n := n.(*atomic.Int32).Load(); n != 0 {
			t.Errorf("%d sources of %q are still attached", n, role)
		}
	}
}

// A look gives a process that has named itself its new role; servers' workers do so long after their start.
func TestLookNoticesNewNames(t *testing.T) {
	sh, out := newShell(t), &seen{}
	gate := filepath.Join(t.TempDir(), "gate")
	check.Err(t, syscall.Mkfifo(gate, 0o600))
	pid := sh.start(`sh -c 'read x <` + gate + `; exec sleep 606'`)
	until(t, "it is a shell of its own", func() bool { return len(proc.CommandLine(pid)) == 3 })
	tree := follow(t, sh.cmd.Process.Pid, out)
	tree.Look(t.Context())
	check.Err(t, os.WriteFile(gate, []byte("x\n"), 0o600))
	until(t, "it is a sleep", func() bool { return len(proc.CommandLine(pid)) == 2 })
	tree.Look(t.Context())
	if n := out.of("sleep 606"); n != 3 {
		t.Errorf("%d sources have the new role, want 3", n)
	}
}

// However late a process executes its program, it does not keep the role of its parent.
func TestTreeNoticesLateExec(t *testing.T) {
	sh, out := newShell(t), &seen{}
	gate := filepath.Join(t.TempDir(), "gate")
	check.Err(t, syscall.Mkfifo(gate, 0o600))
	follow(t, sh.cmd.Process.Pid, out)
	pid := sh.start("(read -r _ <" + gate + "; exec sleep 609)")
	until(t, "the copy is sampled", func() bool { return out.of("sh ") == 6 })
	check.Err(t, os.WriteFile(gate, []byte("go\n"), 0))
	until(t, "it is sampled as what it has become",
		func() bool { return out.of("sleep 609") == 3 && out.of("sh ") == 3 })
	check.Err(t, syscall.Kill(pid, syscall.SIGKILL))
	until(t, "it is let go of", func() bool { return out.of("sleep 609") == 0 })
}

// A process may join after it has executed another program.
func TestFamilyAddsProcessAfterExec(t *testing.T) {
	sh := newShell(t)
	f := proc.NewFamily()
	defer f.Close()
	f.Joins = func(p proc.Process) bool {
		return strings.Contains(strings.Join(proc.CommandLine(p.PID), " "), "sleep 604")
	}
	f.Look()
	pid := sh.start(`sh -c "sleep 0.3; exec sleep 60""4"`)
	until(t, "it joins", func() bool {
		return slices.ContainsFunc(f.Look(), func(m *proc.Member) bool { return m.PID == pid && m.Alive() })
	})
	check.Err(t, syscall.Kill(pid, syscall.SIGKILL))
	m := f.Members()[0]
	until(t, "it has ended", func() bool { return !m.Alive() })
}

// A pid is assigned before its process is visible; frequent looks must not lose it.
func TestNoProcessIsMissedBetweenScans(t *testing.T) {
	sh := newShell(t)
	f := proc.NewFamily()
	defer f.Close()
	if _, err := f.Add(sh.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	f.Look()
	for range 20 {
		pids := make(chan int)
		go func() { pids <- sh.start("timeout --foreground 600 sleep 606") }()
		for pid := 0; pid == 0; {
			f.Look()
			select {
			case pid = <-pids:
			default:
			}
		}
	}
	until(t, "all are seen", func() bool { f.Look(); return len(f.Members()) == 41 })
}
