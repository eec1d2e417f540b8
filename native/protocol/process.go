package protocol

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/logs"
)

// start starts the engine, sampled from its first moment.
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
		gone: make(chan struct{})}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	log := &bounded{WriteCloser: p.Log(strings.ReplaceAll(name, ":", "-")), left: maxLog}
	// the process outlives the call that starts it
	c.Program, err = launch.Start(context.Background(), cmd,
		launch.Options{Name: name, Log: log, Keep: 16 << 10, Role: "engine", Attach: p.Attach})
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, engine.SetUp(fault.Wrap(fault.NoProgram, err, "", "%s", name))
	}
	go c.read()
	return c, nil
}

// ended returns why an engine sends no more lines.
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
	if !c.Ended(time.Second) { // its output ends just before it is reaped
		return c.wrong(op, record.BadOutput, c.name+" closed its standard output, where it must answer")
	}
	words := c.Tail.Lines(200)
	during := "between requests"
	if op != "" {
		during = "during " + op
	}
	return c.wrong(op, logs.ClassOf(words...),
		fmt.Sprintf("%s ended %s (%s); last output: %s", c.name, during, c.Exit(), lastWords(words)))
}

// lastWords shortens an engine's lines and joins the last ones.
func lastWords(lines []string) string {
	var short []string
	for _, l := range lines {
		short = append(short, cut(l, 200))
	}
	return logs.LastWords(short)
}

// patience returns how long the engine may take to end: 0 if it is busy or broken.
func (c *conn) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.call != nil || c.broken != nil {
		return 0
	}
	return grace
}

// close ends the engine: first its input, then, after grace, by force. Its descendants are killed.
func (c *conn) close(grace time.Duration) {
	c.once.Do(func() {
		c.spoil(errClosed)
		_ = c.in.Close()
		c.Ended(grace)
		c.Kill()
		<-c.gone
		_, _ = c.in.Close(), c.out.Close()
		c.Release()
	})
}

// maxLog limits what is kept of an engine's output.
const maxLog = 16 << 20

// bounded is a writer with a limit.
type bounded struct {
	io.WriteCloser
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	if n == 0 {
		return len(p), nil
	}
	if b.left -= n; b.left == 0 {
		p = append(p[:n:n], "\n[truncated]\n"...)
		_, err := b.WriteCloser.Write(p)
		return n, err
	}
	return b.WriteCloser.Write(p[:n])
}
