package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	"llmparity/browser/display"
	"llmparity/browser/store"
	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/machine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// ErrClosed is the cause of a browser's end that we wanted.
var ErrClosed = errors.New("the browser session is closed")

// Facts are what is recorded of a browser.
type Facts struct {
	Product  string            // name and version, as the browser says
	Parts    map[string]string // more of its versions
	Args     []string          // with SCRATCH for the temporary folder, so that they are the same in each launch
	Policy   map[string]string
	Warnings []record.Warning
	PID      int  // 0: its processes are not visible from here
	Attached bool // it was running already
}

// Warn adds a warning.
func (f *Facts) Warn(code, format string, args ...any) {
	f.Warnings = append(f.Warnings, record.Warning{Code: code, Text: fault.OneLine(fmt.Sprintf(format, args...))})
}

// Process is a running browser, with its temporary folder and its output if it is ours. It is a State.
type Process struct {
	Ctx         context.Context // of the tab; ends with its cause when the browser or the page is lost
	End         context.CancelCauseFunc
	About       Facts
	Scratch     string        // empty: not ours
	Stores      store.Folders // of the profile
	Display     *display.Display
	Words       *child.Tail // its last output; nil: not started by us
	MemoryKills int         // out-of-memory kills by the kernel before the start; -1: unknown

	calls sync.WaitGroup // stages of the start, which end with the browser at the latest
}

var _ State = (*Process)(nil)

// Started returns a browser that will be started with an empty profile in a folder whose name has kind.
func Started(kind string) (*Process, error) {
	scratch, err := child.Scratch(kind)
	if err != nil {
		return nil, fault.WriteError(err, os.TempDir(), "set TMPDIR to another folder")
	}
	policy := map[string]string{"isolation": record.OfLaunch, "profile": "empty", "window": "none"}
	return &Process{Scratch: scratch, Words: &child.Tail{Max: wordsKept}, MemoryKills: machine.MemoryKills(),
		About: Facts{Policy: policy}}, nil
}

// Env returns variables for the browser's own folders and, if it is to have a window, for a display.
func (p *Process) Env(ctx context.Context, headed bool) ([]string, error) {
	env := []string{}
	for variable, name := range map[string]string{
		"HOME": "home", "TMPDIR": "tmp", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache",
	} {
		dir := filepath.Join(p.Scratch, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making the browser's folders: %w", err)
		}
		env = append(env, variable+"="+dir)
	}
	if !headed {
		return env, nil
	}
	screen, d, err := display.Env(ctx, p.Scratch)
	if err != nil {
		return nil, err
	}
	p.Display = d
	p.About.Policy["window"] = "on a display"
	if d != nil {
		p.About.Policy["window"] = "on a private display"
	}
	return append(env, screen...), nil
}

// Ran records a command's arguments.
func (p *Process) Ran(cmd *exec.Cmd) {
	for _, a := range cmd.Args[1:] {
		p.About.Args = append(p.About.Args, strings.ReplaceAll(a, p.Scratch, "SCRATCH"))
	}
}

// Context ends, with its cause, when the browser or the page is lost.
func (p *Process) Context() context.Context { return p.Ctx }

// Lose makes the page lost.
func (p *Process) Lose(cause error) { p.End(cause) }

// Facts are what is recorded of the browser.
func (p *Process) Facts() *Facts { return &p.About }

// Stage waits for a call that may never return, except when the browser ends. who is named if it does not answer, or
// if crashed is closed meanwhile.
func (p *Process) Stage(ctx context.Context, limit time.Duration, who string, crashed <-chan struct{},
	call func() error) error {
	done := make(chan error, 1)
	p.calls.Go(func() { done <- call() })
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		_, known := errors.AsType[*fault.Error](err)
		if err == nil || known || ctx.Err() != nil {
			return err
		}
		words := telling(strings.TrimPrefix(err.Error(), "chrome failed to start:"))
		return &engine.NotStarted{What: who + " did not answer: " + cmp.Or(words, "it ended"), Err: err}
	case <-crashed:
		return &engine.NotStarted{What: who + " crashed before answering", Words: p.Telling()}
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return &engine.NotStarted{What: fmt.Sprintf("%s did not answer within %g s", who, limit.Seconds()),
			Words: p.Telling()}
	}
}

// StagesEnded waits for the calls of stages that were given up.
func (p *Process) StagesEnded() { p.calls.Wait() }

// Printed returns the last output of a browser that we started.
func (p *Process) Printed() string {
	if p.Words == nil {
		return ""
	}
	return strings.Join(p.Words.Lines(wordsKept), "\n")
}

// Telling is the most telling line of its output.
func (p *Process) Telling() string { return telling(p.Printed()) }

// telling returns the most telling line of a browser's output: the first FATAL one, else the last ERROR, else the
// last.
func telling(text string) string {
	var fatal, failed, last string
	for line := range strings.Lines(text) {
		line = fault.OneLine(line)
		switch {
		case line == "":
			continue
		case fatal == "" && strings.Contains(line, ":FATAL:"):
			fatal = line
		case strings.Contains(line, ":ERROR:"):
			failed = line
		}
		last = line
	}
	line := []rune(cmp.Or(fatal, failed, last))
	if len(line) > 200 {
		line = append(line[:199], '…')
	}
	return string(line)
}

// Find finds the processes of a browser that has not answered.
func (p *Process) Find() {
	if p.About.PID == 0 {
		p.About.PID = child.GroupNaming(p.Scratch)
	}
}

// Failure adds what is known of a browser that did not become ready, while its processes still exist. Close follows.
func (p *Process) Failure(path string, err error) error {
	failed, ok := errors.AsType[*engine.NotStarted](err)
	if p.diskIsFull() && !errors.Is(err, context.Canceled) { // before its folders are removed
		return p.OnFullDisk(errors.New(fault.What(err)))
	}
	if !ok {
		return err
	}
	p.Find()
	failed.Report = fmt.Sprintf("Processes\n%s\nOutput\n%s\n", child.Describe(child.Group(p.About.PID)), p.Printed())
	failed.Kind, failed.Do = fault.NoChrome, "start "+path+" by hand to see why"
	return failed
}

// NotExecuted is the error if the program never ran: repeating would not help.
func NotExecuted(path string, err error) error {
	failed, ok := errors.AsType[*engine.NotStarted](err)
	if !ok {
		return err
	}
	return fault.New(failed.Kind, failed.Do, "%s does not start: %s", path, failed.What)
}

// AwaitGroup waits for a browser's processes to end.
func AwaitGroup(p *os.Process) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		left := child.Group(p.Pid)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the browser's processes %v are still running", left)
		}
		child.KillGroup(p) // one may just have been forked
	}
}

// Lost is how the page was lost; nil if it was not.
func (p *Process) Lost() error { return p.lostBy(nil) }

// lostBy is Lost for a call that failed with err, which may contain the browser's exit status.
func (p *Process) lostBy(err error) error {
	if p.Ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(p.Ctx)
	if _, known := errors.AsType[*engine.Failure](cause); known || errors.Is(cause, ErrClosed) {
		return cause
	}
	// The connection ended first, which only cancels.
	how := "exit status unknown"
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		how = exit.String()
	}
	return engine.Fail(record.Crash, "the browser ended unexpectedly (%s)", how)
}

// lossReported is how long the report may take that the browser or the page is gone, with what it printed last.
const lossReported = 3 * time.Second

// LossComes waits for the report that the page is lost; false: there is none.
func (p *Process) LossComes() bool {
	select {
	case <-p.Ctx.Done():
		return true
	case <-time.After(lossReported):
		return p.Ctx.Err() != nil // on a busy machine both may have come
	}
}

// Meaning returns the meaning of a failed call: first the loss of the browser, which makes all calls fail, then the
// caller's context. gone is what has ended if the call says that something has; empty: nothing.
func (p *Process) Meaning(ctx context.Context, err error, gone string) error {
	// A call may notice the loss before its report comes.
	if ctx.Err() == nil && gone != "" && !p.LossComes() {
		return engine.Fail(record.Crash, "%s: %w", gone, err)
	}
	if lost := p.lostBy(err); lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// leastFree is the space on the disk of the profile below which the browser's storage fails.
const leastFree = 1 << 20

// OnFullDisk makes an error a full disk's if the disk of the browser's profile is full. Browsers report that in many
// ways, of which none names the disk: "UnknownError: Failed to execute 'open' on 'CacheStorage'".
func (p *Process) OnFullDisk(err error) error {
	vague := []record.Class{record.Other, record.Quota, record.Download, record.Crash, record.Start}
	_, known := errors.AsType[*fault.Error](err)
	if err == nil || known || !slices.Contains(vague, engine.ClassOf(err)) || !p.diskIsFull() {
		return err
	}
	return fault.Wrap(fault.DiskFull, err, "free some space, or set TMPDIR to a folder on another disk",
		"the disk of the browser's profile in %s is full", filepath.Dir(p.Scratch))
}

func (p *Process) diskIsFull() bool {
	if p.Scratch == "" || p.Ctx != nil && errors.Is(context.Cause(p.Ctx), ErrClosed) { // not ours, or removed
		return false
	}
	u, err := disk.Usage(p.Scratch)
	return err == nil && u.Free < leastFree
}

// wordsKept is how much of the browser's output is kept.
const wordsKept = 16 << 10

// wordsCome is how long output of a process may arrive after the browser has reported the end of the process.
const wordsCome = 500 * time.Millisecond

// heapFull matches what V8 prints before it ends a renderer or worker whose heap is full; the browser reports a crash.
var heapFull = regexp.MustCompile(`V8 javascript OOM \([^)]*\)|Last few GCs|(?i:out of memory)`)

// Killed is what the browser reports for a renderer that got SIGKILL.
const Killed = "killed"

// EndedFor returns whether a process ended because memory ran out, and how that is known.
func (p *Process) EndedFor(status string) (class record.Class, how string) {
	if strings.Contains(strings.ToLower(status), "oom") {
		return record.OOM, status // reported by the browser, on some systems
	}
	if kills := machine.MemoryKills(); status == Killed && p.MemoryKills >= 0 && kills > p.MemoryKills {
		return record.OOM, "the kernel killed a process because memory ran out"
	}
	if status == Killed || p.Words == nil {
		return record.Crash, status
	}
	const pause = 5 * time.Millisecond
	for range wordsCome / pause { // counted, because on a busy machine a deadline may pass before the first look
		if slices.ContainsFunc(p.Words.Lines(wordsKept), heapFull.MatchString) {
			return record.OOM, status + "; the browser printed that memory ran out"
		}
		time.Sleep(pause)
	}
	return record.Crash, status
}
