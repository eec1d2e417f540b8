package proc

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// TreeOptions says how a tree is followed.
type TreeOptions struct {
	Every time.Duration // how often the tree is looked at; 0: FastEvery
	Ours  bool          // we started it: the highest RSS may begin anew at phase edges
	// Appeared and Ended are told of every process, in turn, the root too. They must not call the Tree's Look or Close.
	Appeared, Ended func(pid int, role string)
}

// Tree samples a process and its descendants: those there are, and those that come later. A process whose parent ends
// goes on being sampled. One that may not be read is said to be so by the sampler, and the rest goes on.
type Tree struct {
	role   func(pid int, name string, cmdline []string) string
	attach func(sample.Source) func()
	o      TreeOptions
	stop   context.CancelFunc
	done   chan struct{}

	turn   sync.Mutex // to look
	family *Family
	known  []*branch

	mu   sync.Mutex // never held while something is called
	pids []int
}

// branch is a member of a tree. One that was just forked is its parent's double and does not say yet what it will be:
// it gets its role at the look after.
type branch struct {
	member   *Member
	reported bool
	looks    int
	role     string
	detach   []func()
}

// NewTree samples the process root and its descendants until Close: what is there is attached when it returns. role
// says what a process is to its engine; without one, or where it says nothing, the system's name for the process is it.
func NewTree(root int, role func(pid int, name string, cmdline []string) string,
	attach func(sample.Source) (detach func()),
	o TreeOptions) (*Tree, error) {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Tree{role: role, attach: attach, o: o, stop: cancel, done: make(chan struct{}), family: NewFamily()}
	m, err := t.family.Add(root)
	if err != nil {
		cancel()
		t.family.Close()
		return nil, fmt.Errorf("the tree of process %d: %w", root, err)
	}
	t.known = append(t.known, &branch{member: m})
	t.Look(ctx)
	if o.Every <= 0 {
		o.Every = FastEvery
	}
	go t.loop(ctx, o.Every)
	return t, nil
}

func (t *Tree) loop(ctx context.Context, every time.Duration) {
	defer close(t.done)
	tick := time.NewTicker(every)
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

// Look looks now, e.g. once a load has ended: all that are there are sampled when it returns.
func (t *Tree) Look(ctx context.Context) { t.look(ctx, true) }

func (t *Tree) look(ctx context.Context, settle bool) {
	t.turn.Lock()
	defer t.turn.Unlock()
	if t.family == nil || ctx.Err() != nil {
		return
	}
	t.known = slices.DeleteFunc(t.known, t.ended)
	find := t.family.Look
	if settle {
		find = t.family.LookAtAll
	}
	for _, m := range find() {
		t.known = append(t.known, &branch{member: m})
	}
	pids := make([]int, 0, len(t.known))
	for _, b := range t.known {
		if !b.reported && (settle || b.looks > 0 || b.member.IsItself()) {
			if settle {
				becomeItself(b.member)
			}
			t.take(b)
		}
		b.looks++
		pids = append(pids, b.member.PID)
	}
	slices.Sort(pids)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pids = pids
}

// becomeItself gives a process that was just forked the moment that it takes to become another program, if it is to be
// one.
func becomeItself(m *Member) {
	const patience, step = 20 * time.Millisecond, time.Millisecond
	for n := 0; n < int(patience/step) && isYoung(m.Process) && !m.IsItself(); n++ {
		time.Sleep(step)
	}
}

// take attaches the sources of a process.
func (t *Tree) take(b *branch) {
	b.reported = true
	p := b.member.Process
	if now, err := Look(p.PID); err == nil && now.Start == p.Start {
		p.Name = now.Name
	}
	if t.role != nil {
		b.role = t.role(p.PID, p.Name, CommandLine(p.PID))
	}
	if b.role == "" {
		b.role = p.Name
	}
	read := Sources
	if t.o.Ours {
		read = SourcesOfOurs
	}
	sources, err := read(p.PID, b.role)
	switch {
	case isGone(err):
	case err != nil:
		sources = []sample.Source{&unreadable{process: p, role: b.role, err: err}}
	}
	for _, s := range sources {
		b.detach = append(b.detach, t.attach(s))
	}
	if t.o.Appeared != nil {
		t.o.Appeared(p.PID, b.role)
	}
}

// ended lets go of a process that has ended, and tells whether it has.
func (t *Tree) ended(b *branch) bool {
	if b.member.Alive() {
		return false
	}
	t.release(b)
	t.family.Drop(b.member)
	return true
}

func (t *Tree) release(b *branch) {
	for _, detach := range b.detach {
		detach()
	}
	if b.reported && t.o.Ended != nil {
		t.o.Ended(b.member.PID, b.role)
	}
}

// PIDs gives the processes that were there at the last look, the root too while it runs.
func (t *Tree) PIDs() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.pids)
}

// Close ends the sampling of the tree; the processes go on. It may be called more than once.
func (t *Tree) Close() {
	t.stop()
	<-t.done
	t.turn.Lock()
	defer t.turn.Unlock()
	if t.family == nil {
		return
	}
	for _, b := range t.known {
		for _, detach := range b.detach {
			detach()
		}
	}
	t.family.Close()
	t.family, t.known = nil, nil
}

// unreadable is a process that may not be read: its error is what a sampler says of it.
type unreadable struct {
	process Process
	role    string
	err     error
}

func (u *unreadable) Describe() record.Source {
	return record.Source{Role: u.role, Method: quickMethod, PID: u.process.PID, Start: u.process.Start,
		Every:  FastEvery,
		Kernel: true, // or its whole method would be read by a goroutine of its own
		Sees:   "nothing", Blind: "everything: it may not be read"}
}

func (u *unreadable) Read(context.Context, *record.Sample) error { return u.err }
