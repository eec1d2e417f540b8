package child

import (
	"fmt"
	"os/exec"
	"syscall"
)

// guard is a process in another process's group that kills the group when we are gone.
type guard struct{ done chan struct{} }

// newGuard starts a guard for the group of pid. It has no parent-death signal: it must survive us.
func newGuard(pid int) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", "read -r _; kill -KILL 0")
	Tag(cmd)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: pid}
	if _, err := cmd.StdinPipe(); err != nil { // has no data and ends when we do; closed by Wait
		return nil, fmt.Errorf("guarding process %d: %w", pid, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guarding process %d: %w", pid, err)
	}
	g := &guard{done: make(chan struct{})}
	go func() {
		defer close(g.done)
		_ = cmd.Wait() // it is killed with the group
	}()
	return g, nil
}

// wait waits for the guard of a killed group.
func (g *guard) wait() {
	if g != nil {
		<-g.done
	}
}
