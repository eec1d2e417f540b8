package child

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"time"
)

// otherWriters is how long other processes that hold an ended process's output may still write.
const otherWriters = time.Second

// mostInPipe is how much the kernel keeps for a pipe's reader, at most.
const mostInPipe = 1 << 20

// Output reads a pipe from a process to the end, or after its read deadline until it is empty. If the process has
// ended, all that it wrote is then read, even if a busy machine comes to it late.
type Output struct {
	File *os.File
	late int // bytes read after the deadline
}

func (o *Output) Read(p []byte) (int, error) {
	n, err := o.File.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) || o.late > mostInPipe { // others may write without end
		return n, err
	}
	if n = available(o.File, p); n == 0 {
		return 0, err
	}
	o.late += n
	return n, nil
}

// outlet hands on what a process writes. Unlike os/exec it does not give up while there is something to read.
type outlet struct {
	from, theirs *os.File
	done         chan struct{}
	err          error // exec.ErrWaitDelay if another process still holds the output
}

// outlets replaces the standard output and error of cmd, if they are not files, by pipes that are read.
func outlets(cmd *exec.Cmd) (all []*outlet, err error) {
	same := sameWriter(cmd.Stdout, cmd.Stderr)
	for _, w := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		if w == &cmd.Stderr && same {
			cmd.Stderr = cmd.Stdout
			break
		}
		if _, file := (*w).(*os.File); *w == nil || file {
			continue
		}
		o := &outlet{done: make(chan struct{})}
		if o.from, o.theirs, err = os.Pipe(); err != nil {
			return all, err
		}
		all = append(all, o)
		go o.copy(*w)
		*w = o.theirs
	}
	return all, nil
}

// sameWriter reports whether both are one writer, which then needs no lock. Some types cannot be compared.
func sameWriter(a, b io.Writer) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return a == b
}

// copy hands on what is read until the end of the pipe, or until end limits the time.
func (o *outlet) copy(to io.Writer) {
	defer close(o.done)
	defer o.from.Close()
	_, o.err = io.Copy(to, &Output{File: o.from})
	if errors.Is(o.err, os.ErrDeadlineExceeded) {
		o.err = exec.ErrWaitDelay
	}
}

// end waits until the output of an ended process has been read, and returns the first error.
func end(all []*outlet) (err error) {
	for _, o := range all {
		_ = o.from.SetReadDeadline(time.Now().Add(otherWriters)) // pipes support deadlines
	}
	for _, o := range all {
		if <-o.done; err == nil {
			err = o.err
		}
	}
	return err
}
