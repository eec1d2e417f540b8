package child_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
)

// asParent makes the test binary start sleeping processes and wait: the parent that tests kill.
const asParent = "CHILD_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) != "" {
		parent()
		return
	}
	goleak.VerifyTestMain(m)
}

func parent() {
	ctx := context.Background()
	p, err := child.Start(ctx, exec.Command("sleep", "600"))
	guarded, err2 := child.StartGuarded(ctx, exec.Command("sh", "-c", "sleep 600 & exec sleep 600"))
	dir, err3 := child.Scratch("test")
	if err := errors.Join(err, err2, err3); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID(), dir, guarded.PID())
	<-p.Done()
}

func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if !child.Alive(pid) {
			return
		}
		// An unreaped orphan is dead too.
		if s, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(s), ") Z ") {
			return
		}
	}
	t.Fatalf("process %d is still alive", pid)
}

func TestChildrenEndWhenTheParentIsKilled(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asParent+"=1")
	out, err := cmd.StdoutPipe()
	check.Err(t, err)
	check.Err(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	check.Err(t, err)
	fields := strings.Fields(line)
	pid, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(line)
	}
	var family []int // a sleep, and a guarded process with a child and its guard
	for deadline := time.Now().Add(time.Minute); len(family) < 4 &&
		time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		family = child.Tagged(cmd.Process.Pid)
	}
	if len(family) != 4 {
		t.Errorf("%d processes, want 4", len(family))
	}
	for _, want := range []string{fields[0], fields[2]} {
		if !slices.ContainsFunc(family, func(pid int) bool { return strconv.Itoa(pid) == want }) {
			t.Errorf("Tagged = %v, want it to hold %s", family, want)
		}
	}
	child.Sweep()
	if _, err := os.Stat(fields[1]); err != nil {
		t.Errorf("Sweep removed a living process's folder: %v", err)
	}

	check.Err(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	for _, pid := range append(family, pid) {
		gone(t, pid) // including the guarded process's child
	}
	child.Sweep()
	if _, err := os.Stat(fields[1]); !os.IsNotExist(err) {
		t.Errorf("Sweep kept the folder %s of a dead process: %v", fields[1], err)
	}
}

// written waits for a PID in a file.
func written(t *testing.T, path string) int {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			check.Err(t, err)
			return pid
		}
	}
	t.Fatalf("no PID was written to %s", path)
	return 0
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pid")
	// The grandchild ignores SIGTERM; its parent obeys it.
	script := `sh -c 'trap "" TERM; echo $$ > ` + pids + `.tmp; mv ` + pids + `.tmp ` + pids +
		`; sleep 600 & wait' & wait`
	p, err := child.Start(t.Context(), exec.Command("sh", "-c", script))
	check.Err(t, err)
	grandchild := written(t, pids)
	p.Stop(5 * time.Second)
	gone(t, p.PID())
	gone(t, grandchild)
}

// Processes that left the group of a guarded process end with it, but children of other processes do not.
func TestNothingOutlivesAGuardedProcess(t *testing.T) {
	for _, ends := range []string{"exit 0", "exec sleep 600"} {
		t.Run(ends, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pid")
			script := `setsid sh -c 'echo $$ > ` + pids + `.tmp; mv ` + pids + `.tmp ` + pids + `; exec sleep 600' & `
			other, err := child.StartGuarded(t.Context(), exec.Command("sleep", "600"))
			check.Err(t, err)
			defer other.Kill()
			p, err := child.StartGuarded(t.Context(), exec.Command("sh", "-c", script+ends))
			check.Err(t, err)
			stray := written(t, pids)
			if ends == "exit 0" {
				<-p.Done()
			}
			p.Kill()
			gone(t, stray)
			gone(t, p.PID())
			select {
			case <-other.Done():
				t.Error("another process's child ended too")
			default:
			}
		})
	}
}

func TestEndOfAProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := child.Start(ctx, exec.Command("sleep", "600"))
	check.Err(t, err)
	if p.Ended(0) || p.Asked() {
		t.Error("a running process counts as ended or asked to end")
	}
	cancel()
	<-p.Done()
	if p.Err() == nil || p.Exit() != "signal: killed" || !p.Asked() || !p.Ended(0) {
		t.Errorf("a killed process: %v, %s", p.Err(), p.Exit())
	}
	if p, err = child.Start(t.Context(), exec.Command("true")); err != nil {
		t.Fatal(err)
	}
	if !p.Ended(time.Minute) || p.Asked() || p.Exit() != "exit status 0" {
		t.Errorf("ended by itself: %q, asked: %v", p.Exit(), p.Asked())
	}
	p.Kill()
}

// slow takes nothing of a process's output until the process and the time for other writers have gone.
type slow struct {
	bytes int
	gone  chan struct{}
}

func (s *slow) Write(p []byte) (int, error) {
	<-s.gone
	s.bytes += len(p)
	return len(p), nil
}

// What a process wrote is read, however late.
func TestNoOutputIsLost(t *testing.T) {
	for name, others := range map[string]string{"alone": "", "with a child that has its output": "sleep 600 & "} {
		out := &slow{gone: make(chan struct{})}
		cmd := exec.Command("sh", "-c", others+"head -c 65536 /dev/zero")
		cmd.Stdout = out
		p, err := child.StartGuarded(t.Context(), cmd)
		check.Err(t, err)
		gone(t, p.PID())
		time.Sleep(1200 * time.Millisecond) // the more time, the more could be lost
		close(out.gone)
		<-p.Done()
		p.Kill()
		if out.bytes != 65536 {
			t.Errorf("%s: %d bytes, want 65536", name, out.bytes)
		}
	}
}
