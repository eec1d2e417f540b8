package protocol

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample/proc"
)

// What an engine may send without being ended for it.
const (
	maxLine   = 4 << 20
	maxStages = 100      // of a load
	maxText   = 16 << 20 // of a generation
)

// grace is how long an engine may take to end once its input has, or to end a request that was given up.
const grace = 2 * time.Second

// errClosed is a call whose engine was ended under it, or long before it.
var errClosed = engine.Fail(record.Cancelled, "the session is closed")

// conn is a running engine, and what is said to it and by it.
type conn struct {
	name    string
	silence time.Duration
	proc    *child.Process
	end     context.CancelFunc // of the process's context
	in, out *os.File
	tail    *child.Tail
	log     io.WriteCloser
	clock   clock
	tree    *proc.Tree // nil: the engine had ended before it could be looked at

	quit chan struct{} // closed when broken is set
	gone chan struct{} // closed once nothing comes any more, which is after quit

	mu     sync.Mutex
	call   *call // that goes on, or was given up and has not ended
	id     int   // of the last request
	broken error // why nothing can be asked any more

	lines int // read so far; the reader's own
	once  sync.Once
}

// wholeLines leaves out what comes behind the last line's end: an engine that is ended while it writes has not said it.
func wholeLines(data []byte, _ bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, bytes.TrimSuffix(data[:i], []byte("\r")), nil
	}
	return 0, nil, nil
}

// call is a request that the engine was given.
type call struct {
	id    int
	op    string
	max   int // tokens that it may send
	sent  time.Time
	got   chan received
	ended chan struct{} // closed with its last line
	given chan struct{} // closed when it is given up

	tokens, stages, text int // that came
}

type received struct {
	message
	at time.Time
}

// start starts the engine and has it sampled.
func start(name string, argv []string, silence time.Duration, p engine.Probe) (*conn, error) {
	c := &conn{name: name, silence: silence, tail: &child.Tail{Max: 16 << 10}, quit: make(chan struct{}), gone: make(chan struct{}), clock: readClock()}
	c.log = p.Log(strings.ReplaceAll(name, ":", "-"))
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
	c.in, c.out = in, out

	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, both{c.tail, &bounded{to: c.log, left: maxLog}}
	ctx, end := context.WithCancel(context.Background()) // it outlives the call that starts it
	c.end = end
	if c.proc, err = child.Start(ctx, cmd); err != nil {
		close(c.gone)
		c.release()
		return nil, &engine.Failure{Class: record.SetUp, Err: fault.Wrap(fault.UnknownEngine, err, "", "%s", name)}
	}
	c.tree, err = proc.NewTree(c.proc.PID(), role, p.Attach, proc.TreeOptions{Ours: true})
	go c.read()
	if err == nil {
		return c, nil
	}
	select {
	case <-c.proc.Done(): // one that died already is the next call's to explain
		return c, nil
	case <-time.After(time.Second):
		c.close(0)
		return nil, fmt.Errorf("sampling %s: %w", name, err)
	}
}

// role is that of the program and of all that it starts.
func role(int, string, []string) string { return "engine" }

// look has what the engine has started meanwhile sampled at once.
func (c *conn) look(ctx context.Context) {
	if c.tree != nil {
		c.tree.Look(ctx)
	}
}

// read takes the engine's lines until none comes.
func (c *conn) read() {
	defer close(c.gone)
	go func() {
		<-c.proc.Done()
		_ = c.out.SetReadDeadline(time.Now().Add(time.Second)) // somebody whom it started may still have the other end
	}()
	lines := bufio.NewScanner(c.out)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	lines.Split(wholeLines)
	for lines.Scan() {
		at := time.Now()
		if err := c.take(lines.Bytes(), at); err != nil {
			c.fail(err)
			return
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		c.lines++
		c.fail(c.breach(fmt.Sprintf("it is longer than %d MiB", maxLine>>20), nil))
		return
	}
	c.fail(c.ended())
}

// take hands a line to who waits for it.
func (c *conn) take(line []byte, at time.Time) error {
	c.lines++
	c.mu.Lock()
	now := c.call
	c.mu.Unlock()
	m, err := parse(line)
	if err == nil {
		err = now.fits(m)
	}
	if err != nil {
		return c.breach(err.Error(), line)
	}
	select {
	case <-now.given: // nobody listens
	case <-c.quit:
	case now.got <- received{m, at}:
	}
	if m.last() {
		c.mu.Lock()
		c.call = nil
		c.mu.Unlock()
		close(now.ended)
	}
	return nil
}

// fits says why a message is no answer to the call, which may be none.
func (k *call) fits(m message) error {
	switch {
	case k == nil:
		return fmt.Errorf("it answers request %d, and none goes on", m.ID)
	case m.ID != k.id:
		return fmt.Errorf("it answers request %d, and request %d (%s) goes on", m.ID, k.id, k.op)
	case m.Event == evToken && k.op != opGenerate, m.Event == evStage && k.op != opLoad:
		return fmt.Errorf("a %s is no answer to %s", m.Event, k.op)
	case m.Event == evToken:
		k.tokens++
		k.text += len(m.Text)
	case m.Event == evStage:
		k.stages++
	}
	switch {
	case k.tokens > k.max:
		return fmt.Errorf("it is token %d of a generation of %d", k.tokens, k.max)
	case k.text > maxText:
		return fmt.Errorf("the text of a generation is longer than %d MiB", maxText>>20)
	case k.stages > maxStages:
		return fmt.Errorf("a load has more than %d stages", maxStages)
	}
	return nil
}

// breach is a line that the protocol doesn't have.
func (c *conn) breach(what string, line []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	op, id := "", 0
	if c.call != nil {
		op, id = c.call.op, c.call.id
	}
	said := ""
	if line != nil {
		said = fmt.Sprintf("; it says %q", cut(string(line), 80))
	}
	text := fmt.Sprintf("%s breaks the protocol in line %d of its output: %s%s", c.name, c.lines, what, said)
	if op != "" {
		text += "; a right answer is such as " + example(op, id)
	}
	return c.wrong(op, record.BadOutput, text+"; what is for people belongs to standard error")
}

// wrong is a failure; in an engine that does not even say hello right its author must mend something first.
func (c *conn) wrong(op string, class record.Class, text string) error {
	if op == opHello {
		return &engine.Failure{Class: class, Err: fault.New(fault.BadProtocol, "see docs/protocol.md", "%s", text)}
	}
	return &engine.Failure{Class: class, Err: errors.New(fault.OneLine(text))}
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// fail ends the engine for a reason; the first one counts.
func (c *conn) fail(err error) {
	c.spoil(err)
	c.proc.Kill()
}

func (c *conn) spoil(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
		close(c.quit)
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
	select {
	case <-c.proc.Done():
	case <-time.After(time.Second): // its output ends a moment before it is reaped
		return c.wrong(op, record.BadOutput, c.name+" has closed its standard output, by which it answers")
	}
	words, how := c.tail.Lines(200), "exit status 0"
	if err := c.proc.Err(); err != nil {
		how = err.Error()
	}
	class := record.Crash
	if outOfMemory(words) {
		class = record.OOM
	}
	during := "while nothing was asked of it"
	if op != "" {
		during = "in answer to " + op
	}
	return c.wrong(op, class, fmt.Sprintf("%s ended %s (%s); its last words: %s", c.name, during, how, lastWords(words)))
}

func lastWords(lines []string) string {
	if len(lines) == 0 {
		return "it said nothing"
	}
	lines = lines[max(0, len(lines)-3):]
	for i, l := range lines {
		lines[i] = cut(l, 200)
	}
	return strings.Join(lines, " | ")
}

func outOfMemory(lines []string) bool {
	all := strings.ToLower(strings.Join(lines, "\n"))
	for _, sign := range []string{"out of memory", "memoryerror", "cannot allocate memory", "bad_alloc", "failed to allocate"} {
		if strings.Contains(all, sign) {
			return true
		}
	}
	return false
}

// ask sends a request and gives its last message; on gets those before it. An error of on ends the engine: it is a breach.
func (c *conn) ask(ctx context.Context, op string, max int, request func(id int) any, on func(*call, received) error) (received, *call, error) {
	k, err := c.begin(ctx, op, max)
	if err != nil {
		return received{}, nil, err
	}
	k.sent = time.Now()
	if err := c.send(ctx, request(k.id), c.silence); err != nil {
		return received{}, k, c.unsent(ctx, err)
	}
	quiet := time.NewTimer(c.silence)
	defer quiet.Stop()
	for {
		var r received
		select {
		case <-ctx.Done():
			c.giveUp(k)
			return r, k, ctx.Err()
		case r = <-k.got:
		case <-quiet.C:
			c.fail(c.wrong(op, record.Hung, fmt.Sprintf("%s said nothing for %s in answer to %s; its last words: %s",
				c.name, c.silence, op, lastWords(c.tail.Lines(200)))))
			<-c.gone
			return r, k, c.why()
		case <-c.gone:
			select {
			case r = <-k.got: // what it said before
			default:
				return r, k, c.why()
			}
		}
		quiet.Reset(c.silence)
		switch {
		case ctx.Err() != nil: // what was read ahead is not told any more
			c.giveUp(k)
			return r, k, ctx.Err()
		case r.Event == evError:
			return r, k, c.refused(r.message)
		case r.Event == evDone:
			return r, k, nil
		}
		if err := on(k, r); err != nil {
			err = c.wrong(op, record.BadOutput, fmt.Sprintf("%s breaks the protocol: %v", c.name, err))
			c.fail(err)
			return r, k, err
		}
	}
}

// begin waits for a request that was given up, and makes another.
func (c *conn) begin(ctx context.Context, op string, max int) (*call, error) {
	limit := time.NewTimer(c.silence)
	defer limit.Stop()
	for {
		c.mu.Lock()
		if c.broken != nil {
			defer c.mu.Unlock()
			return nil, c.broken
		}
		before := c.call
		if before == nil {
			c.id++
			c.call = &call{id: c.id, op: op, max: max,
				got: make(chan received, 64), ended: make(chan struct{}), given: make(chan struct{})}
			defer c.mu.Unlock()
			return c.call, nil
		}
		c.mu.Unlock()
		select {
		case <-before.ended:
		case <-c.gone:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit.C:
			c.fail(c.wrong(op, record.Hung, fmt.Sprintf("%s did not end a %s that was cancelled, %s ago; it must read its input meanwhile",
				c.name, before.op, c.silence)))
		}
	}
}

// send writes a line.
func (c *conn) send(ctx context.Context, request any, within time.Duration) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	_ = c.in.SetWriteDeadline(time.Now().Add(within)) // a pipe has deadlines
	stop := context.AfterFunc(ctx, func() { _ = c.in.SetWriteDeadline(time.Now()) })
	defer stop()
	_, err = c.in.Write(append(line, '\n'))
	return err
}

// unsent says why a request could not be handed over. Half a line is no request: the engine is of no use after it.
func (c *conn) unsent(ctx context.Context, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = c.wrong("", record.Hung, fmt.Sprintf("%s has not read its input for %s", c.name, c.silence))
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		c.fail(err)
		return err
	}
	select {
	case <-c.gone: // it ended
	case <-time.After(grace):
		c.fail(c.wrong("", record.BadOutput, c.name+" has closed its standard input, by which it is asked"))
		<-c.gone
	}
	return c.why()
}

// giveUp cancels a call. The engine may go on with it for a while, which nobody hears.
func (c *conn) giveUp(k *call) {
	close(k.given)
	c.mu.Lock()
	c.id++
	id := c.id
	c.mu.Unlock()
	_ = c.send(context.Background(), plainRequest{ID: id, Op: opCancel, Of: k.id}, grace) // whoever asks next waits for the call's end
}

// idle waits for a call that was given up, for a while; false tells that it still goes on.
func (c *conn) idle(ctx context.Context) bool {
	c.mu.Lock()
	k := c.call
	c.mu.Unlock()
	if k == nil {
		return true
	}
	select {
	case <-k.ended:
		return true
	case <-c.gone:
	case <-ctx.Done():
	case <-time.After(grace):
	}
	return false
}

func (c *conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// refused is an error that the engine told.
func (c *conn) refused(m message) error {
	text := fmt.Sprintf("%s: %s", c.name, cut(m.Message, 400))
	switch m.Class {
	case "oom":
		return &engine.Failure{Class: record.OOM, Err: errors.New(fault.OneLine(text))}
	case "bad-model":
		return &engine.Failure{Class: record.SetUp, Err: fault.New(fault.BadModel, "name another model or engine", "%s", text)}
	case "prompt-too-long":
		return &engine.Failure{Class: record.SetUp, Err: fault.New(fault.PromptTooLong,
			"shorten the prompt, ask for fewer tokens or give the model a larger context", "%s", text)}
	}
	return &engine.Failure{Class: record.Other, Err: errors.New(fault.OneLine(text))}
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

// close ends the engine: by the end of its input, and by force once its grace is over.
func (c *conn) close(grace time.Duration) {
	c.once.Do(func() {
		c.spoil(errClosed)
		_ = c.in.Close()
		select {
		case <-c.proc.Done():
		case <-time.After(grace):
		}
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
	c.end()
	_, _ = c.in.Close(), c.out.Close()
	_ = c.log.Close() // nothing hangs on its last bytes
}

// maxLog is how much of what an engine prints is kept.
const maxLog = 16 << 20

// both writes to the tail and to the log; a full disk must not end the engine by a closed pipe.
type both struct {
	tail *child.Tail
	log  io.Writer
}

func (b both) Write(p []byte) (int, error) {
	_, _ = b.log.Write(p) // the tail keeps what matters
	return b.tail.Write(p)
}

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
