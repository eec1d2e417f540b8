package proc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// Tree samples a process and its descendants, present and future, even after their parents end. The sampler warns of
// processes that can't be read. A nil tree has no processes.
type Tree struct {
	role   func(cmdline []string) string
	attach func(sample.Source) func()
	ours   bool // because we started it
	stop   context.CancelFunc
	done   chan struct{}

	turn   sync.Mutex // held while looking
	family *Family
	known  []*branch

	mu   sync.Mutex // not held during calls
	pids []int
}

// branch is a member of a tree.
type branch struct {
	*Member
	taken  time.Time // zero: not yet
	role   string    // as which it was taken
	copied []string  // command line, if it was taken as a copy of its parent
	again  time.Time // when a copy is looked at again
	detach []func()
}

// NotYet as the role of a process says that it is not to be sampled until another look finds another role.
const NotYet = "-"

// NewTree samples the process root and its descendants until Close. When it returns, all present ones are attached.
// role names a process for its engine by its command line; if it returns "", the process's name is used.
// If it is ours, because we started it, the highest RSS is reset at phase edges.
func NewTree(root int, role func(cmdline []string) string, attach func(sample.Source) (detach func()), ours bool) (
	*Tree, error) {
	return NewTreeWith(root, nil, role, attach, ours)
}

// NewTreeWith is NewTree with processes that join besides the descendants, see Family.
func NewTreeWith(root int, joins func(Process) bool, role func(cmdline []string) string,
	attach func(sample.Source) (detach func()), ours bool) (*Tree, error) {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Tree{role: role, attach: attach, ours: ours, stop: cancel, done: make(chan struct{}), family: NewFamily()}
	t.family.Joins = joins
	m, err := t.family.Add(root)
	if err != nil {
		cancel()
		t.family.Close()
		return nil, fmt.Errorf("process tree of %d: %w", root, err)
	}
	t.known = append(t.known, &branch{Member: m})
	t.Look(ctx)
	go t.loop(ctx)
	return t, nil
}

func (t *Tree) loop(ctx context.Context) {
	defer close(t.done)
	tick := time.NewTicker(FastEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.look(ctx, false)
		}
	}
}

// Look checks for new processes now, for example after a load. When it returns, all present ones are attached.
func (t *Tree) Look(ctx context.Context) {
	if t != nil {
		t.look(ctx, true)
	}
}

func (t *Tree) look(ctx context.Context, settle bool) {
	t.turn.Lock()
	defer t.turn.Unlock()
	if t.family == nil || ctx.Err() != nil {
		return
	}
	t.known = slices.DeleteFunc(t.known, t.ended)
	older := len(t.known)
	for _, m := range t.family.look(settle) {
		t.known = append(t.known, &branch{Member: m})
	}
	pids := make([]int, 0, len(t.known))
	for i, b := range t.known {
		if b.taken.IsZero() {
			if settle {
				becomeItself(b.Member)
			}
			// A newly forked process is a copy of its parent, so it gets its role one look later.
			if settle || i < older || b.IsItself() {
				t.take(b)
			}
		} else if b.copied != nil {
			t.takeAgain(b, settle)
		} else if settle {
			t.rename(b)
		}
		pids = append(pids, b.PID)
	}
	slices.Sort(pids)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pids = pids
}

// becomeItself waits a moment for a newly forked process to exec its program.
func becomeItself(m *Member) {
	const patience, step = 20 * time.Millisecond, time.Millisecond
	for n := 0; n < int(patience/step) && m.Young() && !m.IsItself(); n++ {
		time.Sleep(step)
	}
}

// takeAgain gives a process another role that was taken as a copy of its parent and has now executed its own program.
// One that stays a copy is looked at ever more rarely.
func (t *Tree) takeAgain(b *branch, now bool) {
	if !now && time.Now().Before(b.again) {
		return
	}
	line := CommandLine(b.PID)
	if len(line) == 0 || slices.Equal(line, b.copied) {
		b.again = time.Now().Add(time.Since(b.taken))
		return
	}
	t.release(b)
	t.take(b)
}

// rename gives a process another role that has named itself since it was taken, as servers' workers do.
func (t *Tree) rename(b *branch) {
	if line := CommandLine(b.PID); len(line) > 0 && t.role(line) != "" && t.role(line) != b.role {
		t.release(b)
		t.take(b)
	}
}

// take attaches the sources of a process.
func (t *Tree) take(b *branch) {
	p := b.Process
	if now, err := Look(p.PID); err == nil && now.Start == p.Start {
		p.Name = now.Name
	}
	role := cmp.Or(t.role(CommandLine(p.PID)), p.Name)
	if role == NotYet {
		b.taken = time.Time{}
		return
	}
	b.taken, b.copied, b.role = time.Now(), nil, role
	if !b.IsItself() {
		b.copied = CommandLine(b.PID)
	}
	sources, err := Sources(p.PID, role, t.ours)
	sources = WithCPUTime(sources)
	switch {
	case isGone(err):
	case err != nil:
		// A source of the kernel: else all sources of the method would get a goroutine of their own.
		sources = []sample.Source{unreadable{record.Source{Role: role, Method: CheapMethod, PID: p.PID,
			Start: p.Start, Every: FastEvery, Kernel: true,
			Sees: "nothing", Blind: "everything: no permission to read it"}, err}}
	}
	for _, s := range sources {
		b.detach = append(b.detach, t.attach(s))
	}
}

// ended releases a process that has ended, and reports whether it has.
func (t *Tree) ended(b *branch) bool {
	if b.Alive() {
		return false
	}
	t.release(b)
	t.family.Drop(b.Member)
	return true
}

func (t *Tree) release(b *branch) {
	for _, detach := range b.detach {
		detach()
	}
	b.detach = nil
}

// PIDs returns the processes at the last look, including the root while it runs.
func (t *Tree) PIDs() []int {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.pids)
}

// Close ends the sampling; the processes continue. It may be called more than once.
func (t *Tree) Close() {
	if t == nil {
		return
	}
	t.stop()
	<-t.done
	t.turn.Lock()
	defer t.turn.Unlock()
	if t.family == nil {
		return
	}
	for _, b := range t.known {
		t.release(b)
	}
	t.family.Close()
	t.family, t.known = nil, nil
}

// unreadable is a process that can't be read; the sampler warns with its error.
type unreadable struct {
	record.Source
	err error
}

func (u unreadable) Read(context.Context, *record.Sample) error { return u.err }
