package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"llmparity/internal/host/child"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/fault"
)

// Command is a program that is started to be watched. It has our process group and the given input and output, so it
// behaves as if started in the terminal. Where the system supports it, it is held until Release.
//
// If we are killed, the kernel ends it (on Linux), but not what it has started.
type Command struct {
	cmd     *exec.Cmd
	release chan struct{} // closed: it may run
	once    sync.Once
	done    chan struct{} // closed: ended and reaped
}

// Start starts a command.
func Start(args []string, in io.Reader, out, errs io.Writer) (*Command, error) {
	if err := proc.Usable(); err != nil {
		return nil, unusable(err)
	}
	c := &Command{release: make(chan struct{}), done: make(chan struct{})}
	adopt(true)
	fresh := func() *exec.Cmd {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
		child.Tag(cmd)
		cmd.WaitDelay = time.Second // don't wait for others that inherited our pipes
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
		_ = cmd.Wait() // see ProcessState
		close(c.done)
	}()
	if err := <-started; err != nil {
		adopt(false)
		return nil, fault.Wrap(fault.NothingToWatch, err, "give an executable program and its arguments after --, "+
			"or a shell command as `-- sh -c '…'`", "can't start %s", args[0])
	}
	return c, nil
}

func unusable(err error) error {
	return fault.Wrap(fault.NothingToWatch, err,
		"mount the namespace's own /proc (`unshare --mount-proc`, or mount -t proc proc /proc)", "can't watch")
}

// PID returns the command's process id.
func (c *Command) PID() int { return c.cmd.Process.Pid }

// Release lets the command run that Start has held.
func (c *Command) Release() {
	if c != nil {
		c.once.Do(func() { close(c.release) })
	}
}

// Done is closed when the command has ended; nil without a command.
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

// Exit returns the exit code as a shell would, and how the command ended.
func (c *Command) Exit() (code int, how string) {
	state := c.cmd.ProcessState
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), fmt.Sprintf("ended by a signal (%v)", w.Signal())
	}
	return state.ExitCode(), fmt.Sprintf("ended with exit code %d", state.ExitCode())
}

// grace is how long a command may take to end when asked to.
const grace = 5 * time.Second

// moment is how long a program may take to end at once.
const moment = 200 * time.Millisecond

// end ends the command and its descendants.
func (c *Command) end(family *proc.Family, say func(string)) {
	c.Release()
	family.LookAtAll()
	_ = c.signal(family, syscall.SIGTERM)
	if !c.waits(family, moment) {
		say(fmt.Sprintf("asked the command to end; killing it in %v", grace))
		c.waits(family, grace)
	}
	family.LookAtAll()
	err := c.signal(family, os.Kill)
	const killed = 2 * time.Second
	if !c.waits(family, killed) {
		say(fmt.Sprintf("the command's processes continue: %v",
			cmp.Or(err, errors.New("they survive being killed"))))
	}
}

// waits waits until all processes have ended, and reports whether they have.
func (c *Command) waits(family *proc.Family, most time.Duration) bool {
	for end := time.Now().Add(most); ; time.Sleep(10 * time.Millisecond) {
		if c.ended() && !slices.ContainsFunc(family.Members(), (*proc.Member).Alive) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// signal signals the command and its descendants. It returns an error for processes that we may not signal.
func (c *Command) signal(family *proc.Family, s os.Signal) error {
	var err error
	send := func(p *os.Process) {
		if refused := p.Signal(s); errors.Is(refused, fs.ErrPermission) { // otherwise it has just ended
			err = fmt.Errorf("process %d: %w", p.Pid, refused)
		}
	}
	if !c.ended() {
		send(c.cmd.Process)
	}
	for _, m := range family.Members() {
		if m.PID == c.PID() || !m.Alive() {
			continue
		}
		if p, err := os.FindProcess(m.PID); err == nil {
			send(p)
			_ = p.Release()
		}
	}
	return err
}

// TakeSignals takes over signals from the program while a command runs, and returns a context that ends with the signal
// that ends the watching; its cause carries the exit code. In a terminal the command also gets SIGINT and decides what
// to do; a second one, or SIGTERM, ends it.
func TakeSignals(ctx context.Context, say func(string)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	come, done := make(chan os.Signal, 4), make(chan struct{})
	signal.Notify(come, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(done)
		for patient := true; ; {
			got, open := <-come
			switch {
			case !open:
				return
			case got == syscall.SIGTERM:
				cancel(fault.New(fault.Terminated, "", "terminated"))
			case patient && ofTerminal():
				patient = false
				say("interrupted: the command decides what to do; interrupt again to end it")
			default:
				cancel(fault.New(fault.Interrupted, "", "interrupted"))
			}
		}
	}()
	return ctx, func() {
		signal.Stop(come)
		close(come)
		<-done
		cancel(nil)
	}
}
