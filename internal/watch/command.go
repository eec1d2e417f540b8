package watch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/internal/sample/proc"
)

// Command is a program that was started to be watched. It has our process group, and the input and output that it is given: in a
// terminal it is used as if it had been started there. Where the system can hold it, it does nothing before Release.
//
// Where we are killed the kernel ends it (on Linux), but not what it started.
type Command struct {
	cmd     *exec.Cmd
	release chan struct{} // closed: it may go on
	once    sync.Once
	done    chan struct{} // closed: it has ended and was reaped
}

// Start starts a command. Where that fails there is nothing to watch.
func Start(args []string, in io.Reader, out, errs io.Writer) (*Command, error) {
	c := &Command{release: make(chan struct{}), done: make(chan struct{})}
	fresh := func() *exec.Cmd {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", child.Tag, os.Getpid()))
		cmd.WaitDelay = time.Second // who inherited a pipe of ours must not keep us
		return cmd
	}
	started := make(chan error)
	go func() {
		cmd, resume, err := start(fresh)
		c.cmd = cmd
		started <- err
		if err != nil {
			return
		}
		<-c.release
		resume()
		_ = cmd.Wait() // how it ended is in its state
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, fault.Wrap(fault.NothingToWatch, err, "", "can't start %s", args[0])
	}
	return c, nil
}

// PID is the command's process.
func (c *Command) PID() int { return c.cmd.Process.Pid }

// Release lets the command go on that Start has held.
func (c *Command) Release() {
	if c != nil {
		c.once.Do(func() { close(c.release) })
	}
}

// Done is closed when the command has ended; nil where there is none.
func (c *Command) Done() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.done
}

func (c *Command) ended() bool {
	if c == nil {
		return true
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Exit gives the code that a shell would give for the command's end, and says how it ended; valid once it has.
func (c *Command) Exit() (code int, how string) {
	state := c.cmd.ProcessState
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), fmt.Sprintf("was ended by a signal (%v)", w.Signal())
	}
	return state.ExitCode(), fmt.Sprintf("ended with exit code %d", state.ExitCode())
}

// grace is the time that a command gets to end when it is asked to.
const grace = 5 * time.Second

// end ends the command and everybody it has started. They are asked with the signal that we got, unless the terminal has already sent it
// to all of its group.
func (c *Command) end(family *proc.Family, cause error) {
	c.Release()
	family.LookAtAll()
	var f *fault.Error
	interrupted := errors.As(cause, &f) && f.Kind == fault.Interrupted
	switch {
	case interrupted && ofTerminal():
	case interrupted:
		c.signal(family, os.Interrupt)
	default:
		c.signal(family, syscall.SIGTERM)
	}
	for deadline := time.Now().Add(grace); c.lives(family) && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	family.LookAtAll()
	c.signal(family, os.Kill)
	<-c.done
}

func (c *Command) lives(family *proc.Family) bool {
	for _, m := range family.Members() {
		if m.Alive() {
			return true
		}
	}
	return !c.ended()
}

func (c *Command) signal(family *proc.Family, s os.Signal) {
	if !c.ended() {
		_ = c.cmd.Process.Signal(s) // it may just have ended
	}
	for _, m := range family.Members() {
		if m.PID == c.PID() || !m.Alive() {
			continue
		}
		if p, err := os.FindProcess(m.PID); err == nil {
			_ = p.Signal(s) // it may just have ended
			_ = p.Release() // nothing to lose
		}
	}
}
