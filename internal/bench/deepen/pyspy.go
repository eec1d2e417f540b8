package deepen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmparity/internal/bench/once"
	"llmparity/internal/depth"
	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// pythons are those processes that are a Python, which tells its own functions to py-spy alone.
func pythons(pids []int) (out []int) {
	for _, pid := range pids {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err == nil && strings.HasPrefix(filepath.Base(exe), "python") {
			out = append(out, pid)
		}
	}
	return out
}

// python returns the Python process to sample, because py-spy samples one: a worker where a server has them, as others
// spin while they wait for it; 0: none is a Python.
func python(p *once.Probe) int {
	if found := append(pythons(p.Workers), pythons(p.PIDs)...); len(found) > 0 {
		return found[0]
	}
	return 0
}

// pySpy finds py-spy on PATH or in the environment of an engine's Python, which not all of its processes tell.
func pySpy(pids []int) (string, error) {
	if path, err := exec.LookPath("py-spy"); err == nil {
		return path, nil
	}
	for _, pid := range pids {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // gone: its end is noticed elsewhere
		python, _, _ := strings.Cut(string(line), "\x00")
		path, err := exec.LookPath(filepath.Join(filepath.Dir(python), "py-spy"))
		if err == nil && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return "", fault.New(fault.Run, "run `scripts/setup py-spy`, or put it on PATH",
		"functions of Python are sampled with py-spy, which is not here")
}

// spy generates again while py-spy samples a Python process: with its native functions where it can.
func (f *Found) spy(ctx context.Context, s *once.Session, r engine.Request, pid int) error {
	path, err := pySpy(s.Probe.PIDs)
	if err != nil {
		return err
	}
	dir, err := child.Scratch("py-spy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "folded")
	args := []string{"record", "--native", "--format", "raw", "--rate", strconv.Itoa(hertz), "--nolineno", "--output",
		out, "--pid", strconv.Itoa(pid)}
	spy, err := spying(ctx, path, args)
	if err != nil && ctx.Err() == nil { // some systems lack the unwinder
		spy, err = spying(ctx, path, append([]string{"record"}, args[2:]...))
	}
	if err != nil {
		return err
	}
	n := 0
	var failed error
	for end := monotonic() + long; failed == nil && monotonic() < end; n++ {
		_, failed = s.Generate(ctx, r, func(record.Token) {})
	}
	spy.Interrupt() // it writes what it saw
	if !spy.Ended(time.Minute) {
		spy.Kill()
	}
	if failed != nil {
		return failed
	}
	in, err := os.Open(out)
	if err != nil {
		return fmt.Errorf("py-spy wrote nothing: %w", err)
	}
	defer in.Close()
	stacks, err := depth.ReadFolded(in, time.Second/hertz)
	if err != nil {
		return fmt.Errorf("what py-spy wrote: %w", err)
	}
	running(stacks)
	if stacks.Total() == 0 {
		return errors.New("py-spy saw no sample; generate more tokens")
	}
	stacks.Generations = n
	f.Stacks = stacks
	return nil
}

// waits are the functions in which a thread waits for others or for our next request. py-spy samples them, too, unlike
// perf, which counts the processor's time.
var waits = regexp.MustCompile(`^(?:__)?(?:(?:clock_)?nanosleep|read|p?poll|epoll_p?wait|p?select|futex\w*|` +
	`pthread_cond_\w*wait\w*|sem_\w*wait\w*|sched_yield)(?: \(|$)`)

// running drops the stacks of threads that wait.
func running(s *depth.Stacks) {
	maps.DeleteFunc(s.Seen, func(stack string, _ int64) bool {
		return waits.MatchString(stack[strings.LastIndex(stack, ";")+1:])
	})
}

// spying starts py-spy, and waits until it samples. Before that, it reads the symbols of all libraries.
func spying(ctx context.Context, path string, args []string) (*child.Process, error) {
	cmd := exec.Command(path, args...)
	begun := &until{words: "Sampling process", seen: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = begun, begun
	p, err := child.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	select {
	case <-begun.seen:
		return p, nil
	case <-p.Done():
	case <-time.After(2 * time.Minute):
		p.Kill()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, fault.New(fault.Run, "run as root, or set kernel.yama.ptrace_scope to 0", "py-spy could not sample: %s",
		fault.OneLine(begun.text()))
}

// until is output that is kept, and closes seen when it has certain words.
type until struct {
	words string
	seen  chan struct{}
	once  sync.Once
	mu    sync.Mutex
	all   bytes.Buffer
}

var _ io.Writer = (*until)(nil)

func (u *until) Write(b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all.Len() < 1<<16 {
		u.all.Write(b)
	}
	if bytes.Contains(u.all.Bytes(), []byte(u.words)) {
		u.once.Do(func() { close(u.seen) })
	}
	return len(b), nil
}

func (u *until) text() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all.String()
}
