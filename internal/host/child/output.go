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

// Output reads a pipe from a process to the end, or after its read deadline until it is empty. If the process has
// ended, all that it wrote is then read, even if a busy machine comes to it late.
type Output struct {
	File *os.File
	late int // reads after the deadline
}

// A read after the deadline fails without trying, so it gets a new one. Others may write without end, so there are few.
const (
	anotherRead = 100 * time.Millisecond
	mostLate    = 20
)

func (o *Output) Read(p []byte) (int, error) {
	n, err := o.File.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) || o.late == mostLate {
		return n, err
	}
	o.late++
	_ = o.File.SetReadDeadline(time.Now().Add(anotherRead)) // pipes support deadlines
	return o.File.Read(p)
}

// outlet hands on what a process writes. Unlike os/exec it does not give up while there is something to read.
type outlet struct {
	from, theirs *os.File
	done         chan struct{}
	err          error // exec.ErrWaitDelay if another process still holds the output
}

// outlets replaces the standard output and error of cmd, if they are not files, by pipes that are read. If both are one
// writer, they are one pipe, so that the writer needs no lock.
func outlets(cmd *exec.Cmd) (all []*outlet, err error) {
	same := cmd.Stdout == cmd.Stderr
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
