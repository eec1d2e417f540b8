// Package child manages the processes and temporary folders of this program.
//
// Every process gets its own process group, a mark in its environment, and on Linux the kernel's parent-death signal,
// so that it dies with us, even if we are killed. That signal is tied to the thread that started the process, so a
// goroutine that is locked to its thread must never end in this program. A browser's children hold a pipe to the
// browser and end with it. Start other programs that have children by StartGuarded. A child that leaves its group
// still survives our SIGKILL. Temporary folders have our PID in their names; the next start removes those of processes
// that no longer exist.
package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// commands counts the commands that were tagged.
var commands atomic.Int64

// Own sets cmd's group, parent-death signal and tag, for commands that another package starts.
func Own(cmd *exec.Cmd) {
	Tag(cmd)
	own(cmd)
}

// Tag marks the processes of cmd, and their children, in their environment: with our PID and the command's number. It
// returns the mark.
func Tag(cmd *exec.Cmd) string {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	mark := fmt.Sprintf("%s%d/", ownedBy(os.Getpid()), commands.Add(1))
	cmd.Env = append(cmd.Env, mark)
	return mark
}

// Variable is the environment variable of the mark.
const Variable = "LLMPARITY_OWNER"

// ownedBy returns what all marks of a process begin with. No mark begins with another one.
func ownedBy(pid int) string { return fmt.Sprintf("%s=%d/", Variable, pid) }

// Process is a started command.
type Process struct {
	cmd    *exec.Cmd
	done   chan struct{}
	err    error
	asked  atomic.Bool // by Stop or Kill
	polite sync.Once
	killed sync.Once

	guard *guard // may be nil
	mark  string // in its environment and its children's; may be empty
}

// Start starts cmd, which ends when ctx is done, at the latest.
func Start(ctx context.Context, cmd *exec.Cmd) (*Process, error) { return start(ctx, cmd, false) }

// StartGuarded is Start for a program that starts others, which the parent-death signal would not reach. A process in
// its group waits for our end and then kills the group. Kill also kills processes that left the group but kept their
// environment; always call it, even if the process ended by itself. Outside Linux it is Start.
func StartGuarded(ctx context.Context, cmd *exec.Cmd) (*Process, error) { return start(ctx, cmd, true) }

func start(ctx context.Context, cmd *exec.Cmd, guarded bool) (*Process, error) {
	mark := Tag(cmd)
	own(cmd)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	if guarded {
		p.mark = mark
	}
	cmd.WaitDelay = otherWriters // of standard input; see outlet for the output
	out, err := outlets(cmd)
	if err == nil {
		err = cmd.Start()
	}
	for _, o := range out {
		_ = o.theirs.Close() // the process has its own
	}
	if err != nil {
		_ = end(out)
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	if guarded { // before the process is reaped and its group number can be reused
		p.guard, err = newGuard(p.PID())
	}
	release := context.AfterFunc(ctx, p.Kill)
	go func() {
		p.err = p.cmd.Wait()
		if err := end(out); p.err == nil {
			p.err = err
		}
		release() // the group number may be reused
		close(p.done)
	}()
	if err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and been reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended, after Done is closed.
func (p *Process) Err() error { return p.err }

// Exit describes how the process ended, after Done is closed.
func (p *Process) Exit() string {
	if p.err == nil || errors.Is(p.err, exec.ErrWaitDelay) { // it ended well, but others held its output
		return "exit status 0"
	}
	return p.err.Error()
}

// Ended waits for the end of the process, up to atMost.
func (p *Process) Ended(atMost time.Duration) bool {
	select {
	case <-p.done:
		return true
	default: // the next select takes either of two that are ready
	}
	select {
	case <-p.done:
		return true
	case <-time.After(atMost):
		return false
	}
}

// Asked reports whether Stop or Kill was called, so that the end is not a crash.
func (p *Process) Asked() bool { return p.asked.Load() }

// Kill kills the process and its group and waits for its end, even during a Stop. If guarded, it kills all processes
// that it started.
func (p *Process) Kill() {
	p.asked.Store(true)
	// Once, because the group number may be reused.
	p.killed.Do(func() {
		signalGroup(p.cmd.Process, syscall.SIGKILL)
		for range 200 { // again, because one may start another meanwhile
			if p.mark == "" || killMarked(p.mark) == 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	<-p.done
	p.guard.wait()
}

// Ask notes that the process is asked to end in another way than by a signal.
func (p *Process) Ask() { p.asked.Store(true) }

// Owns reports whether another process has its mark: it, or a child of it, started that, even in a container.
func (p *Process) Owns(pid int) bool { return p.mark != "" && carries(pid, p.mark) }

// Stop asks the process to end, and kills it after grace. The group may outlive its leader, so it is always killed.
func (p *Process) Stop(grace time.Duration) {
	p.asked.Store(true)
	p.polite.Do(func() { signalGroup(p.cmd.Process, syscall.SIGTERM) })
	p.Ended(grace)
	p.Kill()
}

// Interrupt sends Ctrl-C's signal to the process and its group. Do not call it long after the process ended.
func (p *Process) Interrupt() {
	select {
	case <-p.done:
	default:
		signalGroup(p.cmd.Process, syscall.SIGINT)
	}
}

// KillGroup kills a process that was started with Own, and its group. It does not wait.
func KillGroup(p *os.Process) { signalGroup(p, syscall.SIGKILL) }

// Tail keeps the last bytes that are written to it, for error messages.
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

// Lines returns the last n non-empty lines.
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
