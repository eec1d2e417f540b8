// Package launch is what engines of native programs share: a program that is started, sampled and waited for, what a
// session has of it, and the text that comes of it.
//
// It knows no engine. What a program is asked, and what its words mean, is the engine's to know.
package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
	"llmparity/native/logs"
)

// Options says how a program is started.
type Options struct {
	Name   string         // for people
	Log    io.WriteCloser // takes what it prints; closed with the program
	Keep   int            // how much of that is kept for its last words, in bytes
	Read   io.Writer      // reads along; nil: nobody does
	Leader bool           // it is started by child.StartLeader
	// Role is that of the program and of all that it starts, in what is sampled by Attach; empty: nothing is.
	Role   string
	Attach func(sample.Source) (detach func())
}

// Program is one that runs, with what it prints and what is sampled of it.
type Program struct {
	*child.Process
	Tail  *child.Tail
	Begun time.Time
	// Tree is the process, and all that it starts; nil where nothing is sampled, or it had ended before.
	Tree *proc.Tree

	name    string
	log     io.Closer
	release sync.Once
	looks   sync.WaitGroup
	mu      sync.Mutex
	over    bool     // it is being released
	also    []func() // end further sources
}

// Start starts a program and has it sampled from its first instant. What it prints goes where the options say, but for
// a standard output that cmd has already. It ends when ctx is done, at the latest.
func Start(ctx context.Context, cmd *exec.Cmd, o Options) (*Program, error) {
	p := &Program{Tail: &child.Tail{Max: o.Keep}, name: o.Name, log: o.Log}
	out := logs.Tee{o.Log, p.Tail}
	if o.Read != nil {
		out = append(out, o.Read)
	}
	cmd.Stderr = out
	if cmd.Stdout == nil {
		cmd.Stdout = out
	}
	start := child.StartGuarded
	if o.Leader {
		start = child.StartLeader
	}
	p.Begun = time.Now()
	var err error
	if p.Process, err = start(ctx, cmd); err != nil {
		p.Release()
		return nil, err
	}
	if o.Role == "" {
		return p, nil
	}
	role := func(int, string, []string) string { return o.Role }
	p.Tree, err = proc.NewTree(p.PID(), role, o.Attach, proc.TreeOptions{Ours: true})
	// Why one died already is to be found out by whoever asks it something.
	if err != nil && !errors.Is(err, sample.ErrGone) && !p.Ended(time.Second) {
		p.End(0)
		return nil, fmt.Errorf("sampling %s: %w", o.Name, err)
	}
	return p, nil
}

// Look has what the program has started meanwhile sampled from now on. It goes through all processes, and is no part of
// the load.
func (p *Program) Look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Tree != nil && !p.over {
		p.looks.Go(func() { p.Tree.Look(context.Background()) })
	}
}

// Also has a further source read until the program is released; false: it is by now.
func (p *Program) Also(src sample.Source, attach func(sample.Source) (detach func())) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.also = append(p.also, attach(src))
	return true
}

// End ends the program, by force once grace is over, and releases it.
func (p *Program) End(grace time.Duration) {
	if grace > 0 {
		p.Stop(grace)
	} else {
		p.Kill()
	}
	p.Release()
}

// Release lets go of what belongs to a program that has ended. Whoever calls it second waits for the first.
func (p *Program) Release() { p.release.Do(p.letGo) }

func (p *Program) letGo() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.looks.Wait()
	if p.Tree != nil {
		p.Tree.Close()
	}
	for _, detach := range p.also {
		detach()
	}
	_ = p.log.Close() // nothing hangs on its last bytes
}

// Alive gives a context that also ends with the program: on a port that was taken a stranger may accept and never
// answer.
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

// ErrEnded is a program that ended while it was waited for.
var ErrEnded = errors.New("the program ended")

// Await asks the program until it is ready, and gives the times of its first answer and of the one that said so. Its
// first answer may take so long and no longer; then it is worth another start.
func (p *Program) Await(ctx context.Context, within time.Duration,
	ask func(context.Context) (answers, ready bool)) (first, ready time.Time, err error) {
	alive, release := p.Alive(ctx)
	defer release()
	soon, stop := context.WithTimeout(alive, within)
	defer stop()
	waits := soon // for the first answer
	for {
		// Often enough for a twentieth of what the load takes, seldom enough not to slow it down.
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

// NotStarted is the failure of a program that is worth another start, with what is seen of it now.
func (p *Program) NotStarted(format string, args ...any) error {
	report := child.Describe(child.Group(p.PID())) + "\nOutput\n" + strings.Join(p.Tail.Lines(1000), "\n")
	return &engine.NotStarted{What: fmt.Sprintf(format, args...), Report: report, Kind: fault.Run}
}

// Crashed is the failure of a program that ended in the middle of its work, by its last lines.
func (p *Program) Crashed(words ...string) *engine.Failure {
	return engine.Fail(logs.ClassOf(words...), "%s crashed (%s); its last words: %s", p.name, p.Exit(),
		logs.LastWords(words))
}
