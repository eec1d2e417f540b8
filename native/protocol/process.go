package protocol

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample/proc"
	"llmparity/native/logs"
)

// start starts the engine and has it sampled.
func start(name string, argv []string, silence time.Duration, p engine.Probe) (*conn, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirIn.Close()
	out, theirOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, err
	}
	defer theirOut.Close()
	c := &conn{name: name, silence: silence, in: in, out: out, clock: readClock(), quit: make(chan struct{}),
		gone: make(chan struct{}),
		tail: &child.Tail{Max: 16 << 10}, log: p.Log(strings.ReplaceAll(name, ":", "-"))}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, logs.Tee{&bounded{to: c.log, left: maxLog}, c.tail}
	if c.proc, err = child.StartGuarded(context.Background(), cmd); err != nil { // it outlives the call that starts it
		close(c.gone)
		c.release()
		return nil, &engine.Failure{Class: record.SetUp, Err: fault.Wrap(fault.NoProgram, err, "", "%s", name)}
	}
	c.tree, err = proc.NewTree(c.proc.PID(), role, p.Attach, proc.TreeOptions{Ours: true})
	go c.read()
	if err == nil {
		return c, nil
	}
	if c.proc.Ended(time.Second) { // one that died already is the next call's to explain
		return c, nil
	}
	c.close(0)
	return nil, fmt.Errorf("sampling %s: %w", name, err)
}

// role is that of the program and of all that it starts.
func role(int, string, []string) string { return "engine" }

// look has what the engine has started meanwhile sampled from now on. It goes through all processes, which takes as
// long as a small load: it is no part of the call that asks for it.
func (c *conn) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tree != nil && c.broken == nil { // else nobody waits for it
		c.looks.Go(func() { c.tree.Look(context.Background()) })
	}
}

// ended says how an engine came to say nothing more.
func (c *conn) ended() error {
	c.mu.Lock()
	op, known := "", c.broken
	if c.call != nil {
		op = c.call.op
	}
	c.mu.Unlock()
	if known != nil {
		return known
	}
	if !c.proc.Ended(time.Second) { // its output ends a moment before it is reaped
		return c.wrong(op, record.BadOutput, c.name+" has closed its standard output, by which it answers")
	}
	words := c.tail.Lines(200)
	during := "while nothing was asked of it"
	if op != "" {
		during = "in answer to " + op
	}
	return c.wrong(op, logs.ClassOf(words...),
		fmt.Sprintf("%s ended %s (%s); its last words: %s", c.name, during, c.proc.Exit(), lastWords(words)))
}

// lastWords are those of an engine, whose lines may be of any length.
func lastWords(lines []string) string {
	var short []string
	for _, l := range lines {
		short = append(short, cut(l, 200))
	}
	return logs.LastWords(short)
}

// patience is how long the engine may take to end: none where it is at work or of no use.
func (c *conn) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.call != nil || c.broken != nil {
		return 0
	}
	return grace
}

// close ends the engine: by the end of its input, and by force once its grace is over. What it started ends with it, by
// force.
func (c *conn) close(grace time.Duration) {
	c.once.Do(func() {
		c.spoil(errClosed)
		_ = c.in.Close()
		c.proc.Ended(grace)
		c.proc.Kill()
		<-c.gone
		c.release()
	})
}

// release lets go of all that belongs to the engine, once it is gone.
func (c *conn) release() {
	if c.tree != nil {
		c.tree.Close()
	}
	c.looks.Wait()
	_, _ = c.in.Close(), c.out.Close()
	_ = c.log.Close() // nothing hangs on its last bytes
}

// maxLog is how much of what an engine prints is kept.
const maxLog = 16 << 20

// bounded drops what is too much.
type bounded struct {
	to   io.Writer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	if n == 0 {
		return len(p), nil
	}
	if b.left -= n; b.left == 0 {
		p = append(p[:n:n], "\n[no more of it is kept]\n"...)
		_, err := b.to.Write(p)
		return n, err
	}
	return b.to.Write(p[:n])
}
