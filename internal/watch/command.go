package watch

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/internal/sample/proc"
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
	remind  chan struct{} // signals that an interrupt is to be passed on
	asked   atomic.Bool   // the terminal has interrupted it
	hurry   chan struct{} // closed: kill it
	hurried sync.Once
	floor   int64 // lower bound for a valid highest RSS
}

// Start starts a command.
func Start(args []string, in io.Reader, out, errs io.Writer) (*Command, error) {
	if err := proc.Usable(); err != nil {
		return nil, unusable(err)
	}
	c := &Command{release: make(chan struct{}), done: make(chan struct{}), remind: make(chan struct{}, 1),
		hurry: make(chan struct{})}
	adopt(true)
	fresh := func() *exec.Cmd {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", child.Tag, os.Getpid()))
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
		do := "give a program and its arguments after --, or a shell command as `-- sh -c '…'`"
		switch {
		case errors.Is(err, fs.ErrPermission):
			do = "make it executable (chmod +x), or name its interpreter, as in `-- sh " + args[0] + "`"
		case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
			do = "give the full path of the program, and check the path after #!; " + do
		}
		return nil, fault.Wrap(fault.NothingToWatch, err, do, "can't start %s", args[0])
	}
	c.floor = max(0, maxRSS(nil))
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

// Interrupted says that the terminal has sent SIGINT to its process group: the command decides what to do. Processes
// outside the group, or without a handler, get the signal from us a little later.
func (c *Command) Interrupted() {
	c.asked.Store(true)
	time.AfterFunc(late, func() {
		select {
		case c.remind <- struct{}{}:
		default:
		}
	})
}

// late is longer than the terminal's signal takes.
const late = time.Second

// reminded signals that an interrupt is to be passed on; nil without a command.
func (c *Command) reminded() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.remind
}

// passOn interrupts processes that the terminal's SIGINT has not reached. A command that handles the signal keeps its
// children.
func (c *Command) passOn(family *proc.Family) {
	if !c.ended() && decides(c.PID()) {
		return
	}
	c.signal(family, os.Interrupt, decides)
}

// Hurry kills the command while we wait for it to end.
func (c *Command) Hurry() { c.hurried.Do(func() { close(c.hurry) }) }

// maxRSS returns the command's highest RSS and its lower bound, after it has ended.
func (c *Command) maxRSS() (peak, floor int64) { return maxRSS(c.cmd.ProcessState), c.floor }

// abandon stops adopting orphans.
func (c *Command) abandon() { adopt(false) }

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

// end ends the command and its descendants: first with the signal that we received, or SIGTERM if the terminal has
// already sent that one.
func (c *Command) end(family *proc.Family, cause error, say func(string)) {
	c.Release()
	family.LookAtAll()
	var f *fault.Error
	ask := os.Signal(syscall.SIGTERM)
	if errors.As(cause, &f) && f.Kind == fault.Interrupted && !c.asked.Load() {
		ask = os.Interrupt
	}
	c.signal(family, ask, nil)
	if !c.waits(family, moment) {
		say(fmt.Sprintf("asked the command to end; killing it in %v", grace))
		c.waits(family, grace)
	}
	family.LookAtAll()
	err := c.signal(family, os.Kill, nil)
	const killed = 2 * time.Second
	select {
	case <-c.done:
	case <-time.After(killed):
	}
	if err != nil || !c.ended() {
		say(fmt.Sprintf("the command's processes continue: %v",
			cmp.Or(err, errors.New("it survives being killed"))))
	}
}

// moment is how long a program may take to end at once.
const moment = 200 * time.Millisecond

// waits waits until all processes have ended, and reports whether they have.
func (c *Command) waits(family *proc.Family, most time.Duration) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(most); time.Now().Before(end); {
		if !c.lives(family) {
			return true
		}
		select {
		case <-c.hurry:
			return false
		case <-tick.C:
		}
	}
	return !c.lives(family)
}

func (c *Command) lives(family *proc.Family) bool {
	for _, m := range family.Members() {
		if m.Alive() {
			return true
		}
	}
	return !c.ended()
}

// signal signals the command and its descendants, except for those that but excludes. It returns an error for processes
// that we may not signal.
func (c *Command) signal(family *proc.Family, s os.Signal, but func(pid int) bool) error {
	var err error
	send := func(p *os.Process) {
		if refused := p.Signal(s); errors.Is(refused, fs.ErrPermission) { // otherwise it has just ended
			err = fmt.Errorf("process %d: %w", p.Pid, refused)
		}
	}
	if !c.ended() && (but == nil || !but(c.PID())) {
		send(c.cmd.Process)
	}
	for _, m := range family.Members() {
		if m.PID == c.PID() || !m.Alive() || but != nil && but(m.PID) {
			continue
		}
		if p, err := os.FindProcess(m.PID); err == nil {
			send(p)
			_ = p.Release()
		}
	}
	return err
}
