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

// Command is a program that was started to be watched. It has our process group, and the input and output that it is
// given: in a terminal it is used as if it had been started there. Where the system can hold it, it does nothing before
// Release.
//
// Where we are killed the kernel ends it (on Linux), but not what it started.
type Command struct {
	cmd     *exec.Cmd
	release chan struct{} // closed: it may go on
	once    sync.Once
	done    chan struct{} // closed: it has ended and was reaped
	remind  chan struct{} // it was interrupted a while ago
	asked   atomic.Bool   // it was interrupted by its terminal
	hurry   chan struct{} // closed: it is killed
	hurried sync.Once
	floor   int64 // below which its highest RSS is not known
}

// Start starts a command. Where that fails there is nothing to watch.
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
		adopt(false)
		do := "give a program and its arguments behind --; a shell's line is `-- sh -c '…'`"
		switch {
		case errors.Is(err, fs.ErrPermission):
			do = "make it executable (chmod +x), or start it by what runs it, such as `-- sh " + args[0] + "`"
		case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
			do = "write the program's whole path, and behind #! one that is there; " + do
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

// Interrupted says that the terminal has sent SIGINT to all of its group: the command decides what it does about it.
// Who can't have got it, or does nothing but end by it, gets it from us a while later.
func (c *Command) Interrupted() {
	c.asked.Store(true)
	time.AfterFunc(late, func() {
		select {
		case c.remind <- struct{}{}:
		default:
		}
	})
}

// late is longer than a signal takes that the terminal sends.
const late = time.Second

// reminded tells when to pass an interrupt on; nil where there is no command.
func (c *Command) reminded() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.remind
}

// passOn interrupts those whom the terminal's SIGINT hasn't reached: who is in another group, and who would have ended
// by it. A command that lives on with it keeps what it has started.
func (c *Command) passOn(family *proc.Family) {
	if !c.ended() && decides(c.PID()) {
		return
	}
	c.signal(family, os.Interrupt, decides)
}

// Hurry kills the command where it is being waited for after it was asked to end.
func (c *Command) Hurry() { c.hurried.Do(func() { close(c.hurry) }) }

// maxRSS gives the command's highest RSS, and the size below which that is not known; valid once it has ended.
func (c *Command) maxRSS() (peak, floor int64) { return maxRSS(c.cmd.ProcessState), c.floor }

// abandon leaves those that go on to the system.
func (c *Command) abandon() { adopt(false) }

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

// end ends the command and everybody it has started. They are asked with the signal that we got; where the terminal has
// sent that one already, with SIGTERM.
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
		say(fmt.Sprintf("asked the command to end; what has not ended in %v is killed", grace))
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
		say(fmt.Sprintf("what the command has started goes on: %v",
			cmp.Or(err, errors.New("it does not end when it is killed"))))
	}
}

// moment is what a program takes to end that does so at once.
const moment = 200 * time.Millisecond

// waits waits until nobody lives any more, and tells whether that is so.
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

// signal signals the command and all that it has started but those left out. The error is of who may not be signalled
// by us.
func (c *Command) signal(family *proc.Family, s os.Signal, but func(pid int) bool) error {
	var err error
	send := func(p *os.Process) {
		if refused := p.Signal(s); errors.Is(refused, fs.ErrPermission) { // any other has just ended
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
			_ = p.Release() // nothing to lose
		}
	}
	return err
}
