// Package child owns what the program starts: processes, and temporary folders.
//
// Every process gets a process group of its own, a tag in its environment, and on Linux the kernel's parent-death
// signal, so that it goes when we go, also when we are killed. The signal is tied to the thread that started the
// process: code of this program must therefore never end a goroutine that is locked to its thread. A browser's own
// children hold a pipe to it and end when it does; other programs with children are started by StartLeader, or, where
// they know nothing of us, by StartGuarded. A child that leaves its group outlives a SIGKILL of ours in any case.
// Temporary folders carry our pid in their names; those of processes that no longer exist are swept at the next start.
package child

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Tag is the environment variable that marks every process we start, and its children, with our pid.
const Tag = "LLMPARITY_OWNER"

// Own makes cmd ours: group, parent-death signal, tag. For commands that another package starts.
func Own(cmd *exec.Cmd) {
	tag(cmd)
	own(cmd, true)
}

func tag(cmd *exec.Cmd) {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", Tag, os.Getpid()))
}

// Process is a started command.
type Process struct {
	cmd    *exec.Cmd
	done   chan struct{}
	err    error
	asked  atomic.Bool // Stop or Kill was called
	polite sync.Once
	killed sync.Once

	guard *guard // nil: there is none
	mark  string // in its environment and in its children's; empty: none
}

// Start starts cmd as ours. It ends when ctx is done, at the latest.
func Start(ctx context.Context, cmd *exec.Cmd) (*Process, error) {
	Own(cmd)
	return start(ctx, cmd)
}

// StartLeader is Start for a program that starts others, which the parent-death signal would not reach. In place of the
// signal it gets a standard input that nothing comes from and that ends when we do: it must then kill its process
// group.
func StartLeader(ctx context.Context, cmd *exec.Cmd) (*Process, error) {
	tag(cmd)
	own(cmd, false)
	if _, err := cmd.StdinPipe(); err != nil { // closed by Wait
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return start(ctx, cmd)
}

// StartGuarded is Start for a program that starts others and knows nothing of us. When we are killed a process that
// waits in its group for that ends the group. Kill ends also what has left the group, as long as it has kept its
// environment; it must be called, also when the process has ended by itself. Off Linux it is Start.
func StartGuarded(ctx context.Context, cmd *exec.Cmd) (*Process, error) {
	Own(cmd)
	mark := marked(cmd)
	p, err := launch(cmd)
	if err != nil {
		return nil, err
	}
	p.mark = mark
	p.guard, err = newGuard(p.PID()) // before the process is reaped: its group's number is its own until then
	p.follow(ctx)
	if err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

func start(ctx context.Context, cmd *exec.Cmd) (*Process, error) {
	p, err := launch(cmd)
	if err == nil {
		p.follow(ctx)
	}
	return p, err
}

func launch(cmd *exec.Cmd) (*Process, error) {
	// A grandchild that inherited our pipes must not keep Wait from returning.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return &Process{cmd: cmd, done: make(chan struct{})}, nil
}

// follow waits for the process's end, which ctx's brings about.
func (p *Process) follow(ctx context.Context) {
	release := context.AfterFunc(ctx, p.Kill)
	go func() {
		p.err = p.cmd.Wait()
		release() // the number of a group that is gone may be given to another
		close(p.done)
	}()
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended; valid once Done is closed.
func (p *Process) Err() error { return p.err }

// Exit says how the process ended, for people; valid once Done is closed.
func (p *Process) Exit() string {
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

// Ended waits for the process's end, at most so long.
func (p *Process) Ended(atMost time.Duration) bool {
	select {
	case <-p.done:
		return true
	default: // of two that are ready the next select takes either
	}
	select {
	case <-p.done:
		return true
	case <-time.After(atMost):
		return false
	}
}

// Asked tells whether Stop or Kill was called: an end that comes behind it is no crash.
func (p *Process) Asked() bool { return p.asked.Load() }

// Kill ends the process and its group at once, and waits for it. It cuts short the grace of a Stop. Of a guarded one it
// ends all that was started by it.
func (p *Process) Kill() {
	p.asked.Store(true)
	// Once: later the group's number may be somebody else's.
	p.killed.Do(func() {
		signalGroup(p.cmd.Process, syscall.SIGKILL)
		if p.mark != "" {
			killMarked(p.mark)
		}
	})
	<-p.done
	p.guard.wait()
}

// Stop asks the process to end, and kills it and its group when it has not after grace. The group may outlive its
// leader, so it is killed in either case.
func (p *Process) Stop(grace time.Duration) {
	p.asked.Store(true)
	p.polite.Do(func() { signalGroup(p.cmd.Process, syscall.SIGTERM) })
	p.Ended(grace)
	p.Kill()
}

// Interrupt sends the process and its group what a terminal's Ctrl-C does. It must not have ended long ago.
func (p *Process) Interrupt() {
	select {
	case <-p.done:
	default:
		signalGroup(p.cmd.Process, syscall.SIGINT)
	}
}

// KillGroup ends, at once, a process that was made ours with Own and its group. It does not wait.
func KillGroup(p *os.Process) { signalGroup(p, syscall.SIGKILL) }

// Tail keeps the last bytes of what is written to it: a server's last words for an error message.
type Tail struct {
	Max int
	mu  sync.Mutex
	buf []byte
}

func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.Max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// Lines gives the last n non-empty lines.
func (t *Tail) Lines(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, l := range bytes.Split(t.buf, []byte("\n")) {
		if l = bytes.TrimSpace(l); len(l) > 0 {
			out = append(out, string(l))
		}
	}
	return out[max(0, len(out)-n):]
}
