package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/logs"
	"llmparity/native/wire"
)

// maxLine is how many bytes a line of an engine may have.
const maxLine = 4 << 20

// grace is how long an engine may take to end after its input has ended, or to end a cancelled request.
const grace = 2 * time.Second

// reaped is how long an engine may take from the end of its output to its own end, if it has ended.
const reaped = 5 * time.Second

var (
	// errClosed is returned if the engine was ended during a call or before it.
	errClosed = engine.Fail(record.Cancelled, "the session is closed")
	// errLate is returned if no line came in time.
	errLate = errors.New("no line in time")
)

// seeProtocol is the advice for an engine that violates the protocol.
const seeProtocol = "see docs/howto/add-an-engine.md"

// conn is a running engine and the conversation with it, one request at a time.
type conn struct {
	name    string
	silence time.Duration
	*launch.Program
	in, out *os.File
	clock   clock

	lines chan received
	life  context.Context         // ends when no more requests are possible, with the reason as its cause
	spoil context.CancelCauseFunc // ends life; the first reason counts
	gone  chan struct{}           // closed when the reader has ended
	call  atomic.Pointer[call]    // current request, or a cancelled one that has not ended
	id    int                     // of the latest request
	once  sync.Once
}

// call is a request to the engine.
type call struct {
	id   int
	op   string
	sent time.Time
}

// received is a line from the engine.
type received struct {
	message
	at   time.Time // when it was read; the same for all lines of one read
	n    int       // number of the line
	line string    // its begin
	err  error     // why it is invalid, or io.EOF after the last line
}

// start starts the engine, sampled from its first moment.
func start(name string, argv []string, of Config, p engine.Probe) (*conn, error) {
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
	c := &conn{name: name, silence: of.Silence, in: in, out: out, clock: readClock(), lines: make(chan received, 64),
		gone: make(chan struct{})}
	c.life, c.spoil = context.WithCancelCause(context.Background())
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Env = theirIn, theirOut, append(of.In.Environ(), of.Env...)
	// the process outlives the call that starts it
	c.Program, err = launch.Start(context.Background(), cmd, launch.Options{Name: name,
		Log: p.Log(strings.ReplaceAll(name, ":", "-")), Keep: 16 << 10, Role: "engine", Attach: p.Attach, In: of.In})
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, engine.SetUp(&fault.Error{Kind: fault.NoProgram, What: err.Error(), Err: err})
	}
	go c.read()
	return c, nil
}

// read reads the engine's lines until the end.
func (c *conn) read() {
	defer close(c.gone)
	go func() {
		<-c.Done()
		_ = c.out.SetReadDeadline(time.Now().Add(time.Second)) // a descendant may still have the other end
	}()
	lines := wire.NewLines(&child.Output{File: c.out})
	lines.Max = maxLine
	for n := 1; ; n++ {
		e, err := lines.Next()
		r := received{at: e.At, n: n, line: string(e.Data[:min(len(e.Data), 400)])}
		switch {
		case errors.Is(err, wire.ErrTooLong):
			r.err = fmt.Errorf("longer than %d MiB", maxLine>>20)
		case err != nil:
			r.err = io.EOF // ignores an incomplete last line
		default:
			r.message, r.err = parse(e.Data)
		}
		select {
		case c.lines <- r:
		case <-c.life.Done():
			return
		}
		if r.err != nil {
			return
		}
	}
}

// next returns the next line that answers a request. All errors but those of ctx and errLate end the engine.
func (c *conn) next(ctx context.Context, k *call, late <-chan time.Time) (received, error) {
	select {
	case <-ctx.Done():
		return received{}, ctx.Err()
	case <-late:
		return received{}, errLate
	case <-c.life.Done():
		return received{}, c.why()
	case r := <-c.lines:
		err := r.err
		if errors.Is(err, io.EOF) {
			return r, c.fail(c.ended(k.op))
		}
		if err == nil {
			err = k.fits(r.message)
		}
		if err != nil {
			return r, c.breach(k, r, err)
		}
		if r.last() {
			c.call.Store(nil)
		}
		return r, nil
	}
}

// ask sends a request and returns its last message; on receives those before it. An error of on is a protocol
// violation and ends the engine.
func (c *conn) ask(ctx context.Context, op string, request fields, on func(*call, received) error) (
	received, *call, error) {
	if err := c.settle(ctx, op, c.silence); err != nil {
		return received{}, nil, err
	}
	k := &call{c.id + 1, op, time.Now()}
	c.call.Store(k)
	if err := c.send(ctx, op, request, c.silence); err != nil {
		return received{}, k, c.unsent(ctx, k, err)
	}
	quiet := time.NewTimer(c.silence)
	defer quiet.Stop()
	for {
		r, err := c.next(ctx, k, quiet.C)
		quiet.Reset(c.silence)
		switch {
		case ctx.Err() != nil: // discard what was read ahead
			if err == nil && r.last() {
				return r, k, ctx.Err()
			}
			// the next request waits until this one has ended
			_ = c.send(context.Background(), opCancel, fields{"of": k.id}, grace)
			return r, k, ctx.Err()
		case errors.Is(err, errLate):
			return r, k, c.fail(c.wrong(op, record.Hung, "%s was silent for %s after %s; last output: %s",
				c.name, c.silence, op, lastWords(c.Tail.Lines(200))))
		case err != nil:
			return r, k, err
		case r.Event == evError:
			return r, k, c.refused(r.message)
		case r.Event == evDone:
			return r, k, nil
		}
		if on == nil {
			continue
		}
		if err := on(k, r); err != nil {
			return r, k, c.breach(k, r, err)
		}
	}
}

// settle waits for a cancelled request to end. op is what comes after it.
func (c *conn) settle(ctx context.Context, op string, within time.Duration) error {
	late := time.After(within)
	for {
		k := c.call.Load()
		if why := c.why(); why != nil || k == nil {
			return why
		}
		_, err := c.next(ctx, k, late)
		if errors.Is(err, errLate) {
			err = c.fail(c.wrong(op, record.Hung,
				"%s did not end a cancelled %s within %s; it must read its input during a request", c.name, k.op, within))
		}
		if err != nil {
			return err
		}
	}
}

// send writes a request with the next id.
func (c *conn) send(ctx context.Context, op string, request fields, within time.Duration) error {
	c.id++
	all := fields{"id": c.id, "op": op}
	maps.Copy(all, request)
	line, err := json.Marshal(all)
	if err != nil {
		return err
	}
	_ = c.in.SetWriteDeadline(time.Now().Add(within)) // pipes support deadlines
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = c.in.SetWriteDeadline(time.Now())
	})
	_, err = c.in.Write(append(line, '\n'))
	if !stop() {
		<-stopped // so that its deadline does not apply to the next line
	}
	return err
}

// unsent returns why a request could not be sent. After half a line the engine is unusable.
func (c *conn) unsent(ctx context.Context, k *call, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if ctx.Err() != nil {
			return c.fail(ctx.Err())
		}
		return c.fail(c.wrong("", record.Hung, "%s did not read its input for %s", c.name, c.silence))
	}
	if k.op != opHello {
		k.op = "" // it ended before the request
	}
	for late := time.After(grace); ; {
		_, err := c.next(context.Background(), k, late)
		if errors.Is(err, errLate) {
			err = c.fail(c.wrong("", record.BadOutput, "%s closed its standard input, where requests arrive", c.name))
		}
		if err != nil {
			return err
		}
	}
}

// fits returns why a message does not answer the request.
func (k *call) fits(m message) error {
	switch {
	case m.ID != k.id:
		return fmt.Errorf("answer to request %d, but request %d (%s) is running", m.ID, k.id, k.op)
	case m.Event == evToken && k.op != opGenerate && k.op != opScore, m.Event == evStage && k.op != opLoad:
		return fmt.Errorf("%s in answer to %s", m.Event, k.op)
	}
	return nil
}

// breach ends an engine for an invalid line, and returns the error.
func (c *conn) breach(k *call, r received, why error) error {
	said := ""
	if r.line != "" {
		said = fmt.Sprintf("; the line is %q", cut(r.line, 80))
	}
	return c.fail(c.wrong(k.op, record.BadOutput, "%s violates the protocol in line %d of its output: %v%s; "+
		"messages for people belong on standard error", c.name, r.n, why, said))
}

// ended returns why an engine sends no more lines.
func (c *conn) ended(op string) error {
	if !c.Ended(reaped) {
		return c.wrong(op, record.BadOutput, "%s closed its standard output, where it must answer", c.name)
	}
	words := c.Tail.Lines(200)
	during := "between requests"
	if op != "" {
		during = "during " + op
	}
	class := logs.ClassOf(words...)
	if c.Signalled() && c.Starved() {
		class = record.OOM
	}
	return c.wrong(op, class, "%s ended %s (%s%s); last output: %s", c.name, during, c.Exit(), c.Limit(),
		lastWords(words))
}

// lastWords shortens an engine's lines and joins the last ones.
func lastWords(lines []string) string {
	var short []string
	for _, l := range lines {
		short = append(short, cut(l, 200))
	}
	return logs.LastWords(short)
}

// refused is an error that the engine reported. Its text has no name: who shows it says which engine failed.
func (c *conn) refused(m message) error {
	text := cut(m.Message, 400)
	switch m.Class {
	case "oom":
		return c.wrong("", record.OOM, "%s", text)
	case "bad-model":
		return engine.SetUp(fault.New(fault.BadModel, "name another model or engine", "%s", text))
	case "prompt-too-long":
		return engine.TooLong("%s", text)
	}
	return c.wrong("", record.Other, "%s", text)
}

// wrong makes a failure. If hello fails, the engine's author must fix it first.
func (c *conn) wrong(op string, class record.Class, format string, args ...any) error {
	if op == opHello && class != record.OOM {
		return &engine.Failure{Class: class, Err: fault.New(fault.BadProtocol, seeProtocol, format, args...)}
	}
	return &engine.Failure{Class: class, Err: errors.New(fault.OneLine(fmt.Sprintf(format, args...)))}
}

// fail ends the engine for a reason, and returns the first one.
func (c *conn) fail(err error) error {
	c.spoil(err)
	c.Kill()
	return c.why()
}

// why returns why no more requests are possible; nil: they are.
func (c *conn) why() error { return context.Cause(c.life) }

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

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
