package child

import (
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// launchTag is the environment variable that tells the children of one guarded process from those of another.
const launchTag = "LLMPARITY_LAUNCH"

// launches counts the guarded processes of ours.
var launches atomic.Int64

// marked puts a mark into the environment of cmd, which has one already.
func marked(cmd *exec.Cmd) string {
	mark := fmt.Sprintf("%s=%d-%d", launchTag, os.Getpid(), launches.Add(1))
	cmd.Env = append(cmd.Env, mark)
	return mark
}

// guard is a process in another one's group that kills the group when we are gone.
type guard struct{ done chan struct{} }

// newGuard starts the guard of the group that pid leads. Our death must not be its own at once.
func newGuard(pid int) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", "read -r _; kill -KILL 0")
	tag(cmd)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: pid}
	if _, err := cmd.StdinPipe(); err != nil { // nothing comes from it, and it ends when we do; closed by Wait
		return nil, fmt.Errorf("guarding process %d: %w", pid, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guarding process %d: %w", pid, err)
	}
	g := &guard{done: make(chan struct{})}
	go func() {
		defer close(g.done)
		_ = cmd.Wait() // killed with the group, as it should be
	}()
	return g, nil
}

// wait waits for a guard whose group was killed.
func (g *guard) wait() {
	if g != nil {
		<-g.done
	}
}

// killMarked ends the processes that carry a mark, wherever they are. One may start another while they are looked for.
func killMarked(mark string) {
	const step, patience = 5 * time.Millisecond, time.Second
	for range int(patience / step) {
		found := carrying(mark)
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
		time.Sleep(step)
	}
}
