// Package watch records the memory of running processes, or of a command that it starts, as CSV rows.
//
// Processes are selected by name or pid, with all their descendants, including later ones. A sampler reads RSS and VMS
// at every tick, before which new processes are looked for. PSS and USS take a thousand times as long, so it reads them
// less often. It can't see a process that starts and ends between two ticks.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
)

// Options says what is watched, and how. Exactly one of Name, PIDs and Command is set.
type Options struct {
	Name    string // part of a name or command line, in any case
	PIDs    []int
	Command *Command
	Joins   func(proc.Process) bool // which processes belong to those of PIDs besides descendants; nil: none

	Interval   time.Duration // between samples
	PSS        time.Duration // shortest interval between reads of PSS; 0: never
	Duration   time.Duration // 0: until the last process has ended
	MaxSamples int           // 0: no limit
	Wait       time.Duration // how long to wait for the first process with Name

	Rows    *Rows             // nil: no rows
	GPU     *gpu.Monitor      // nil: no GPUs
	GPURows *Rows             // nil: no rows
	Say     func(line string) // receives messages
	Draw    func(p Point)     // receives every sample; may be nil
}

// Point is a sample: sums over all processes, in bytes.
type Point struct {
	At        time.Duration // since the first sample
	Processes int
	RSS       int64 // counts shared pages once for each process
	PSS       int64 // carried forward from the last reading; record.Absent: none yet
}

// watcher is the state of watching. The sampler calls it from another goroutine.
type watcher struct {
	o       Options
	sampler *sample.Sampler // nil: not yet
	gpus    *gpus
	ticked  chan struct{} // something may be over

	ids     sync.Mutex
	sources []record.Source // by number

	mu       sync.Mutex
	family   *proc.Family
	alive    []*process
	sum      Summary
	tick     time.Time // the current one
	sized    int       // processes read in it
	err      error     // of writing rows
	pss      int64     // total that was last known
	said     map[string]bool
	reported int   // number of processes announced
	orphans  []int // ended processes that may need reaping

	began, last time.Time
	cpu         time.Duration
}

// Run watches until the last process ends, a limit is reached, or the context is done, whose cause is then the error.
// The summary covers everything until then.
func Run(ctx context.Context, o Options) (Summary, error) {
	if err := proc.Usable(); err != nil && o.Command == nil {
		return Summary{}, unusable(err)
	}
	say := o.Say
	o.Say = func(line string) { say(printable(line)) }
	w := newWatcher(o)
	defer func() {
		w.gpus.stop()
		w.family.Close()
	}()
	err := w.find(ctx)
	if err == nil {
		err = w.follow(ctx)
	}
	w.sum.GPUs, w.sum.GPURows = w.gpus.stop(), w.gpus.written
	if !w.began.IsZero() {
		w.sum.Length = time.Since(w.began)
		w.sum.CPU = machine.SelfCPU() - w.cpu
	}
	if o.Command == nil {
		return w.sum, err
	}
	err = w.leave(ctx, err)
	if o.Command.ended() {
		w.sum.CommandRSS = maxRSS(o.Command.cmd.ProcessState)
	}
	return w.sum, err
}

func newWatcher(o Options) *watcher {
	w := &watcher{o: o, family: proc.NewFamily(), gpus: newGPUs(o), ticked: make(chan struct{}, 1), pss: record.Absent,
		said: map[string]bool{}, sum: Summary{PeakPSS: record.Absent, LeastPSS: record.Absent, MostPSS: record.Absent,
			CommandRSS: record.Absent}}
	w.family.Except = w.isOurs
	return w
}

// isOurs reports whether a process is llmparity itself, or a GPU tool that we run, which briefly looks like us.
func (w *watcher) isOurs(p proc.Process) bool {
	if w.o.GPU == nil || p.Parent != os.Getpid() {
		return watches(p)
	}
	line := proc.CommandLine(p.PID)
	return len(line) == 0 || watches(p) || w.o.GPU.Asks(line) || slices.Equal(line, proc.CommandLine(os.Getpid()))
}

// leave waits for a command that continues unwatched, or ends it after an error.
func (w *watcher) leave(ctx context.Context, err error) error {
	c := w.o.Command
	c.Release()
	defer adopt(false)
	unwritten := fault.Of(err) == fault.DiskFull || fault.Of(err) == fault.Unwritable
	if unwritten {
		w.sum.Why = "can't write rows"
	}
	if err != nil && !unwritten {
		c.end(w.family, w.o.Say)
		return err
	}
	if c.ended() {
		return err
	}
	w.o.Say(w.sum.Why + ": waiting for the command to end, without watching it")
	select {
	case <-c.Done():
		return err
	case <-ctx.Done():
		c.end(w.family, w.o.Say)
		return context.Cause(ctx)
	}
}

// find finds the first processes.
func (w *watcher) find(ctx context.Context) error {
	switch {
	case w.o.Command != nil:
		w.findCommand()
		return nil // it may have ended already
	case len(w.o.PIDs) > 0:
		return w.findPIDs()
	}
	return w.findName(ctx)
}

// findCommand adds the command. Orphans in its tree become our children, and we have no others.
func (w *watcher) findCommand() {
	c := w.o.Command
	m, err := w.family.Add(c.PID())
	if err == nil {
		w.family.Joins = func(p proc.Process) bool { return p.Parent == os.Getpid() && p.Start >= m.Start }
		w.welcome(m)
		return
	}
	c.Release()
	select {
	case <-c.Done():
	case <-time.After(moment): // it may have just ended
		w.o.Say(fmt.Sprintf("can't read the command's memory, so nothing is recorded: %v; run as root if /proc is "+
			"mounted with hidepid, or if it is another user's program", err))
	}
}

func (w *watcher) findPIDs() error {
	w.family.Joins = w.o.Joins
	for _, pid := range w.o.PIDs {
		pid = proc.ProcessOf(pid) // it may be a thread
		if slices.ContainsFunc(w.alive, func(p *process) bool { return p.PID == pid }) {
			continue
		}
		m, err := w.family.Add(pid)
		switch {
		case errors.Is(err, sample.ErrGone):
			return fault.New(fault.NothingToWatch, "`ps ax` lists processes", "process %d does not exist, or has no memory of its own",
				pid)
		case err != nil:
			return fault.Wrap(fault.NothingToWatch, err, "`ps ax` lists processes", "can't watch process %d", pid)
		}
		w.welcome(m)
	}
	if w.o.Joins == nil {
		return nil
	}
	for _, m := range w.family.LookAtAll() {
		w.welcome(m)
	}
	return nil
}

// How often to look for an awaited process: among new processes, and among all.
const (
	lookAgain = 50 * time.Millisecond
	lookAtAll = 500 * time.Millisecond
)

func (w *watcher) findName(ctx context.Context) error {
	w.family.Joins = matcher(w.o.Name)
	tick := time.NewTicker(min(lookAgain, w.o.Interval))
	defer tick.Stop()
	said := false
	last := time.Now()
	for end := last.Add(w.o.Wait); ; {
		look := w.family.Look
		if time.Since(last) > lookAtAll {
			look, last = w.family.LookAtAll, time.Now() // nothing is measured yet
		}
		found := look()
		for _, m := range found {
			w.welcome(m)
		}
		if len(found) > 0 {
			return nil
		}
		if !time.Now().Before(end) {
			return fault.New(fault.NothingToWatch, "check the name with `ps ax`, or wait longer with --wait",
				"no process with %q in its name or command line after %v", w.o.Name, w.o.Wait)
		}
		if !said {
			w.o.Say(fmt.Sprintf("waiting for a process with %q in its name or command line", w.o.Name))
			said = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// doubt is how long a new process may look like a copy of its parent before it counts as one.
const doubt = 250 * time.Millisecond

// welcome adds a process.
func (w *watcher) welcome(m *proc.Member) {
	p := &process{Member: m, came: time.Now()}
	p.double = m.Young() && slices.ContainsFunc(w.alive, func(other *process) bool { return other.PID == m.Parent })
	if m.Err != nil {
		w.unreadable(p, "memory", m.Err)
	}
	p.blind = len(m.Sources) == 0
	w.alive = append(w.alive, p)
	w.sum.Processes++
	if !p.double {
		w.tell(p)
	}
}

// tell announces a process, and samples it.
func (w *watcher) tell(p *process) {
	if w.sampler != nil { // else all are attached together
		w.attach(p)
	}
	w.gpus.follow(p)
	const enough = 20 // lines
	switch w.reported++; {
	case w.reported < enough:
		w.o.Say(fmt.Sprintf("watching process %d (%s)", p.PID, p.Name))
	case w.reported == enough:
		w.o.Say("watching more processes, not listed")
	}
}

// unreadable reports once that something can't be read.
func (w *watcher) unreadable(p *process, what string, err error) {
	if w.said[what] {
		return
	}
	w.said[what] = true
	if errors.Is(err, fs.ErrPermission) {
		w.o.Say(fmt.Sprintf("no permission to read %s of process %d (%s); run as its user, or as root", what, p.PID,
			p.Name))
		return
	}
	w.o.Say(fmt.Sprintf("can't read %s of process %d (%s): %v", what, p.PID, p.Name, err))
}

// follow samples at every tick.
func (w *watcher) follow(ctx context.Context) error {
	ended := w.o.Command.Done()
	w.began, w.cpu = time.Now(), machine.SelfCPU()
	var limit <-chan time.Time
	if w.o.Duration > 0 {
		timer := time.NewTimer(w.o.Duration)
		defer timer.Stop()
		limit = timer.C
	}
	w.start()
	defer w.sampler.Stop()
	w.sampler.Attentive()
	w.sampler.Read()
	w.o.Command.Release()
	for {
		why, err := w.over()
		if w.sum.Why = why; why != "" || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ended:
			ended = nil
			w.sampler.Read()
		case <-limit:
			w.sampler.Read()
		case <-w.ticked:
		}
	}
}

// start makes the sampler, and gives it the processes that were found.
func (w *watcher) start() {
	w.sampler = sample.New(context.Background(), w)
	w.sampler.Tick(record.Source{Method: proc.CheapMethod, Every: w.o.Interval, Kernel: true}, w.look)
	for _, p := range w.alive {
		if !p.double {
			w.attach(p)
		}
	}
}

// over returns why watching ends; empty if it continues.
func (w *watcher) over() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch err := cmp.Or(w.err, w.gpus.failed()); {
	case err != nil:
		return "", err
	case w.full():
		return fmt.Sprintf("limit of %d samples", w.o.MaxSamples), nil
	case w.o.Duration > 0 && time.Since(w.began) >= w.o.Duration:
		return fmt.Sprintf("limit of %v", w.o.Duration), nil
	case len(w.alive) > 0 || !w.o.Command.ended():
		return "", nil
	}
	for _, m := range w.family.LookAtAll() { // started after the last look
		w.welcome(m)
	}
	if len(w.alive) > 0 {
		return "", nil
	}
	return "the last process ended", nil
}

// full reports whether there are as many samples as may be.
func (w *watcher) full() bool { return w.o.MaxSamples > 0 && w.sum.Samples >= w.o.MaxSamples }

// look finds new processes before each tick.
func (w *watcher) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.family.Look() {
		w.welcome(m)
	}
	w.tick = time.Now()
	readable := false
	for _, p := range slices.Clone(w.alive) {
		if p.double && !w.settled(p) {
			continue
		}
		if p.blind && !p.Alive() {
			w.remove(p)
			continue
		}
		if p.read != nil || w.tick.Sub(p.came) < time.Second {
			p.rename()
		}
		readable = readable || !p.blind
	}
	w.orphans = slices.DeleteFunc(w.orphans, reaped)
	if !readable && !w.full() && slices.ContainsFunc(w.alive, func(p *process) bool { return !p.double }) {
		w.complete(0)
	}
	w.notify()
}

// notify wakes what waits for the end, if it may have come.
func (w *watcher) notify() {
	if len(w.alive) > 0 && !w.full() && w.err == nil && w.gpus.failed() == nil {
		return
	}
	select {
	case w.ticked <- struct{}{}:
	default:
	}
}

// settled reports whether a new process is no copy of its parent any more.
func (w *watcher) settled(p *process) bool {
	// Skip it for at least one sample: on a busy machine, a fork takes 100 ms and more until its exec.
	if time.Since(p.came) < doubt && !p.IsItself() && p.Alive() {
		return false
	}
	p.double = false
	p.rename()
	if w.isOurs(p.Process) {
		w.family.Drop(p.Member)
		w.alive = slices.DeleteFunc(w.alive, func(other *process) bool { return other == p })
		return false
	}
	w.tell(p)
	return true
}

// remove removes a process that has ended. Its last reading of PSS gets no row: rows are of living processes.
func (w *watcher) remove(p *process) {
	if p.gone.Swap(true) {
		return
	}
	for _, detach := range p.detach {
		detach()
	}
	w.family.Drop(p.Member)
	w.alive = slices.DeleteFunc(w.alive, func(other *process) bool { return other == p })
	if c := w.o.Command; c != nil && p.PID != c.PID() {
		w.orphans = append(w.orphans, p.PID)
	}
	w.notify()
}

// living returns the process with a pid and start; nil if it has ended.
func (w *watcher) living(pid int, start uint64) *process {
	for _, p := range w.alive {
		if p.PID == pid && p.Start == start {
			return p
		}
	}
	return nil
}

// complete ends a sample.
func (w *watcher) complete(rss int64) {
	w.sum.Samples++
	if !w.last.IsZero() {
		w.sum.Longest = max(w.sum.Longest, w.tick.Sub(w.last))
	}
	w.last = w.tick
	if w.o.Draw != nil {
		processes := 0
		for _, p := range w.alive {
			if !p.double {
				processes++
			}
		}
		w.o.Draw(Point{At: w.tick.Sub(w.began), Processes: processes, RSS: rss, PSS: w.pss})
	}
	n, err := w.o.Rows.flush()
	w.sum.Rows += n
	w.err = cmp.Or(w.err, err)
	w.notify()
}

// rename updates the name: the process may have executed another program.
func (p *process) rename() {
	if now, err := proc.Look(p.PID); err == nil && now.Start == p.Start {
		p.Name = now.Name
	}
}

// String describes a sample in a line.
func (p Point) String() string {
	return fmt.Sprintf("%.1f s  %s  RSS %s  PSS %s", p.At.Seconds(), words.Count(p.Processes, "process"), size(p.RSS),
		size(p.PSS))
}

func size(bytes int64) string {
	if bytes == record.Absent {
		return "not read"
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/record.MiB)
}
