// Package launch has what engines of native programs share: starting a program, sampling it, waiting for it, and what a
// session holds.
//
// It knows no engine: what to ask a program, and what its output means, is up to the engine.
package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/container"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/native/logs"
	"llmparity/native/place"
)

// Options for starting a program.
type Options struct {
	Name string         // for people
	Log  io.WriteCloser // of its output; closed with the program
	Keep int            // how many bytes at the end of its output are kept in memory
	Read io.Writer      // also gets the output; nil: none
	// Role of the program and its descendants, which Attach samples; empty: not sampled. Roles names it by the command
	// line, if they differ.
	Role   string
	Roles  func(line []string) string
	Attach func(sample.Source) (detach func())
	In     *place.Place // where it runs; nil: on this machine
}

// Program is a running program with its output and its sources.
type Program struct {
	*child.Process
	Tail  *child.Tail
	Begun time.Time
	// Tree is the process with its descendants; nil: not sampled, or already ended.
	Tree *proc.Tree

	name    string
	log     io.Closer
	kills   kills                // before the start
	in      *container.Container // nil: on this machine
	hold    io.Closer            // ends it there; nil: the end of its input does
	release sync.Once
	mu      sync.Mutex
	over    bool     // released
	also    []func() // detach further sources
}

// Start starts a program, sampled from its first moment. Its output goes where the options say, unless cmd has a
// standard output already. The program ends with ctx at the latest.
func Start(ctx context.Context, cmd *exec.Cmd, o Options) (*Program, error) {
	p := &Program{Tail: &child.Tail{Max: o.Keep}, name: o.Name, log: o.Log}
	out := &logs.Tee{o.Log, p.Tail}
	if o.Read != nil {
		*out = append(*out, o.Read)
	}
	var err error
	if o.In != nil {
		if p.in, cmd, p.hold, err = o.In.Enter(ctx, cmd); err != nil {
			p.Release()
			return nil, err
		}
	}
	cmd.Stderr = out
	if cmd.Stdout == nil {
		cmd.Stdout = out
	}
	p.kills = countKills(p.in)
	p.Begun = time.Now()
	if p.Process, err = child.StartGuarded(ctx, cmd); err != nil {
		p.Release()
		return nil, err
	}
	if o.Roles == nil {
		o.Roles = func([]string) string { return o.Role }
		if o.Role == "" {
			return p, nil
		}
	}
	p.Tree, err = p.tree(o)
	// If it died already, the caller finds out why when it asks the program something.
	if err != nil && !errors.Is(err, sample.ErrGone) && !p.Ended(time.Second) {
		p.End(0)
		return nil, fmt.Errorf("sampling %s: %w", o.Name, err)
	}
	return p, nil
}

// Look starts sampling the processes that the program has started meanwhile. It scans all processes in the background,
// so it is not part of a load. After the end of the program it does nothing.
func (p *Program) Look() { go p.Tree.Look(context.Background()) }

// Also samples a further source until the program is released; false: it is released already.
func (p *Program) Also(src sample.Source, attach func(sample.Source) (detach func())) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.also = append(p.also, attach(src))
	return true
}

// End ends the program, by force after grace, and releases it.
func (p *Program) End(grace time.Duration) {
	if grace > 0 {
		p.Stop(grace)
	} else {
		p.Kill()
	}
	p.Release()
}

// Release releases a program that has ended. A second caller waits for the first.
func (p *Program) Release() {
	p.release.Do(func() {
		p.mu.Lock()
		p.over = true
		p.mu.Unlock()
		p.Tree.Close()
		for _, detach := range p.also {
			detach()
		}
		_ = p.log.Close() // losing its last bytes is harmless
	})
}

// Alive returns a context that also ends with the program: if another process has its port, a request might never be
// answered.
func (p *Program) Alive(ctx context.Context) (context.Context, context.CancelFunc) {
	alive, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-p.Done():
		case <-alive.Done():
		}
	}()
	return alive, cancel
}

// ErrEnded is returned if the program ended while it was waited for.
var ErrEnded = errors.New("the program ended")

// Await polls the program until it is ready, and returns the times of its first answer and of the one that reported
// ready. If the first answer takes too long, the start is worth repeating.
func (p *Program) Await(ctx context.Context, within time.Duration,
	ask func(context.Context) (answers, ready bool)) (first, ready time.Time, err error) {
	alive, release := p.Alive(ctx)
	defer release()
	soon, stop := context.WithTimeout(alive, within)
	defer stop()
	waits := soon // until the first answer
	for {
		// accurate to a twentieth of the load time, and rare enough not to slow it down
		pause := min(max(time.Since(p.Begun)/20, time.Millisecond), 20*time.Millisecond)
		answers, isReady := ask(waits)
		now := time.Now()
		if answers && first.IsZero() {
			first, waits = now, alive
		}
		if waits.Err() != nil && alive.Err() == nil {
			return first, now, p.NotStarted("%s did not answer within %g s", p.name, within.Seconds())
		}
		if isReady {
			return first, now, nil
		}
		select {
		case <-ctx.Done():
			return first, now, fmt.Errorf("waiting for %s: %w", p.name, ctx.Err())
		case <-p.Done():
			return first, now, ErrEnded
		case <-time.After(pause):
		}
	}
}

// NotStarted is a failed start that is worth repeating, with a report of the program's state.
func (p *Program) NotStarted(format string, args ...any) error {
	report := child.Describe(child.Group(p.Process.PID())) + "\nOutput\n" + strings.Join(p.Tail.Lines(1000), "\n")
	return &engine.NotStarted{What: fmt.Sprintf(format, args...), Report: report, Kind: fault.Run}
}

// Crashed is the failure of a program that ended during its work, classified by its last output.
func (p *Program) Crashed(words ...string) *engine.Failure {
	class := logs.ClassOf(words...)
	if p.Starved() && p.Signalled() {
		class = record.OOM
	}
	return engine.Fail(class, "%s crashed (%s%s); last output: %s", p.name, p.Exit(), p.Limit(),
		logs.LastWords(words))
}

// forwarders only pass on answers of another process; their memory is not the server's.
var forwarders = []string{"ssh", "sshd", "docker-proxy", "kubectl", "socat", "rootlesskit", "slirp4netns", "nginx",
	"haproxy", "caddy", "envoy"}

// Listener finds the process that serves an address. The error says why its memory cannot be sampled.
func Listener(ctx context.Context, hostPort string, here bool) (pid int, program string, err error) {
	if !here {
		return 0, "", errors.New("it is on another machine")
	}
	pid, err = proc.PIDOfListener(ctx, hostPort)
	if err != nil {
		return 0, "", err
	}
	if pid == os.Getpid() {
		return 0, "", errors.New("the server is part of this program")
	}
	program = fmt.Sprint(pid)
	if line := proc.CommandLine(pid); len(line) > 0 {
		program = filepath.Base(strings.Fields(line[0] + " ")[0])
	}
	if slices.Contains(forwarders, program) {
		return 0, "", fmt.Errorf("process %d (%s) listens there and forwards to another process", pid, program)
	}
	return pid, program, nil
}
