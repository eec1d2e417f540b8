// Package watch follows the memory of processes that somebody else runs, or of a command, and writes it down as rows.
//
// Who is watched is found by name, by pid, or is the command that was started, each with all its descendants, those
// that come later too. Resident and virtual size are read at every tick; proportional and unique size, which take a
// thousand times as long, more rarely, in a goroutine of their own, and GPUs, where that is wanted, in others. It sees
// what packages proc and gpu see, and nobody who comes and goes between two ticks.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/machine"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/gpu"
	"llmparity/internal/sample/proc"
)

// Options says who is watched, and how. One of Name, PIDs and Command is given.
type Options struct {
	Name    string // part of a name or a command line; capitals don't count
	PIDs    []int
	Command *Command

	Interval   time.Duration // of samples
	PSS        time.Duration // of reading proportional sizes, at the most often; 0: never
	Duration   time.Duration // 0: until the last process has ended
	MaxSamples int           // 0: any number
	Wait       time.Duration // for the first process with that name

	Rows    *Rows             // nil: none are written
	GPU     *gpu.Monitor      // nil: no GPU is looked at
	GPURows *Rows             // nil: none are written of them
	Say     func(line string) // what happens
	Draw    func(p Point)     // every sample; may be nil
}

// Point is a sample: the sums over all processes that were there, in bytes.
type Point struct {
	At        time.Duration // since the first
	Processes int
	RSS       int64 // shared pages are counted once a process
	PSS       int64 // as last read; record.Absent until then
}

// Summary is what watching came to.
type Summary struct {
	Length    time.Duration
	Samples   int
	Rows      int
	Processes int // that were ever seen
	PeakRSS   int64
	PeakPSS   int64         // record.Absent where it was never read
	Longest   time.Duration // between two samples
	CPU       time.Duration // that this program took meanwhile; 0 where that is not known
	Why       string        // why it ended
	GPUs      *GPUs         // nil: none were looked at, or there are none
	GPURows   int

	// CommandRSS is the highest RSS that the kernel knows of the command's process, or of one that it has waited for;
	// record.Absent where there is none. Only what is above CommandFloor is known: the command begins with what this
	// program had.
	CommandRSS, CommandFloor int64
}

// watcher is a watching that goes on.
type watcher struct {
	o         Options
	family    *proc.Family
	alive     []*process
	expensive *expensive
	gpus      *gpus
	sum       Summary

	began, last time.Time
	cpu         time.Duration
	pss         int64         // of the last pass over all
	reading     record.Sample // of the moment: no allocation at the sampling rate
	said        map[string]bool
	reported    int   // processes that were told of
	orphans     []int // that have ended, and may have to be reaped
}

// process is one that is watched.
type process struct {
	*proc.Member
	quick     sample.Source // nil: may not be read
	expensive sample.Source // nil: may not be read, or is not had here
	read      *reading      // of the expensive one, not yet written
	young     time.Time     // until when it may become another program

	double bool // of its parent, perhaps, for the moment before it becomes the program that it was started for
	waited bool // a sample has skipped it for that
	came   time.Time
}

// Run watches until the last process has ended, the limits are reached, or the context is done; its cause is then the
// error. What was seen until then is in the summary in either case.
func Run(ctx context.Context, o Options) (Summary, error) {
	if err := proc.Usable(); err != nil && o.Command == nil {
		return Summary{}, unusable(err)
	}
	say := o.Say
	o.Say = func(line string) { say(printable(line)) }
	w := &watcher{o: o, family: proc.NewFamily(), pss: record.Absent, said: map[string]bool{}}
	w.family.Except = w.isOurs
	w.sum.PeakPSS, w.sum.CommandRSS = record.Absent, record.Absent
	w.expensive, w.gpus = newExpensive(o.PSS, o.Interval), newGPUs(w.o)
	defer func() {
		w.gpus.stop()
		w.expensive.stop() // before what it reads is closed
		w.family.Close()
	}()
	err := w.find(ctx)
	if err == nil {
		err = errors.Join(w.follow(ctx), w.finish())
	}
	if w.sum.GPUs = w.gpus.stop(); w.gpus != nil {
		w.sum.GPURows = w.gpus.written
	}
	if !w.began.IsZero() {
		w.sum.Length = time.Since(w.began)
		w.sum.CPU = machine.SelfCPU() - w.cpu
	}
	if o.Command == nil {
		return w.sum, err
	}
	err = w.leave(ctx, err)
	if o.Command.ended() {
		w.sum.CommandRSS, w.sum.CommandFloor = o.Command.maxRSS()
	}
	return w.sum, err
}

// isOurs tells whether a process is this program, watching, or one that we ask of GPUs, which is our double for a
// moment and nobody for another.
func (w *watcher) isOurs(p proc.Process) bool {
	if w.o.GPU == nil || p.Parent != os.Getpid() {
		return watches(p)
	}
	line := proc.CommandLine(p.PID)
	return len(line) == 0 || watches(p) || w.o.GPU.Asks(line) || slices.Equal(line, proc.CommandLine(os.Getpid()))
}

// leave waits for a command that goes on unwatched, and ends one where something went wrong.
func (w *watcher) leave(ctx context.Context, err error) error {
	c := w.o.Command
	c.Release()
	defer c.abandon()
	var f *fault.Error
	unwritten := errors.As(err, &f) && (f.Kind == fault.DiskFull || f.Kind == fault.Unwritable)
	if unwritten {
		w.sum.Why = "rows can't be written"
	}
	if err == nil || unwritten {
		if !c.ended() {
			w.o.Say(w.sum.Why + ": the command goes on unwatched; waiting for it to end")
		}
		for !c.ended() {
			select {
			case <-c.Done():
			case <-c.reminded():
				c.passOn(w.family)
			case <-ctx.Done():
				c.end(w.family, context.Cause(ctx), w.o.Say)
				return context.Cause(ctx)
			}
		}
		return err
	}
	c.end(w.family, err, w.o.Say)
	return err
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

// findCommand takes in the command. Who loses its parent in its tree becomes a child of ours: this program has no
// others.
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
	case <-time.After(moment): // enough to be seen to have ended, where it was not held
		w.o.Say(fmt.Sprintf("the command runs, but can't be looked at, and nothing will be recorded of it: %v; is /proc mounted with hidepid, or is "+
			"it another user's program? run as root", err))
	}
}

func (w *watcher) findPIDs() error {
	for i, pid := range w.o.PIDs {
		if slices.Contains(w.o.PIDs[:i], pid) {
			continue
		}
		if of := proc.ProcessOf(pid); of != pid {
			return fault.New(fault.NothingToWatch, fmt.Sprintf("give --pid %d", of), "%d is a thread of process %d",
				pid, of)
		}
		m, err := w.family.Add(pid)
		switch _, there := proc.Look(pid); {
		case err == nil:
			w.welcome(m)
		case errors.Is(err, sample.ErrGone) && there == nil:
			return fault.New(fault.NothingToWatch, "give a program's number; `ps ax` lists what runs",
				"process %d has no memory of its own: "+
					"it is one of the kernel's", pid)
		case errors.Is(err, sample.ErrGone):
			return fault.New(fault.NothingToWatch, "`ps ax` lists what runs", "there is no process %d", pid)
		default:
			return fault.Wrap(fault.NothingToWatch, err, "`ps ax` lists what runs", "can't watch process %d", pid)
		}
	}
	return nil
}

// How often a process that is waited for is looked for among who was started, and among all.
const (
	lookAgain = 50 * time.Millisecond
	lookAtAll = 500 * time.Millisecond
)

func (w *watcher) findName(ctx context.Context) error {
	w.family.Joins = newMatcher(w.o.Name).matches
	tick := time.NewTicker(min(lookAgain, w.o.Interval))
	defer tick.Stop()
	said := false
	last := time.Now()
	for end := last.Add(w.o.Wait); ; {
		look := w.family.Look
		if time.Since(last) > lookAtAll {
			look, last = w.family.LookAtAll, time.Now() // nothing is measured yet that it could disturb
		}
		found := look()
		for _, m := range found {
			w.welcome(m)
		}
		if len(found) > 0 {
			return nil
		}
		if !time.Now().Before(end) {
			return nothing(w.o.Name, w.o.Wait)
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

// doubt is how long a young process may look like its parent without being taken for a copy that stays one.
const doubt = 100 * time.Millisecond

// welcome takes in a process that has come.
func (w *watcher) welcome(m *proc.Member) {
	p := &process{Member: m, came: time.Now()}
	if m.Young() {
		p.young = time.Now().Add(time.Second)
		p.double = slices.ContainsFunc(w.alive, func(other *process) bool { return other.PID == m.Parent })
	}
	if m.Err != nil {
		w.unreadable(p, "memory", m.Err)
	}
	for i, s := range m.Sources {
		if i == 0 {
			p.quick = s
		} else {
			p.expensive = s
		}
	}
	w.alive = append(w.alive, p)
	w.sum.Processes++
	w.expensive.changed(time.Now())
	if !p.double {
		w.tell(p)
	}
}

// tell says that a process is watched.
func (w *watcher) tell(p *process) {
	w.gpus.follow(p)
	const enough = 20 // lines
	switch w.reported++; {
	case w.reported < enough:
		w.o.Say(fmt.Sprintf("watching process %d (%s)", p.PID, p.Name))
	case w.reported == enough:
		w.o.Say("watching more processes, which are not told of any more")
	}
}

// unreadable says once what may not be read.
func (w *watcher) unreadable(p *process, what string, err error) {
	if w.said[what] {
		return
	}
	w.said[what] = true
	if errors.Is(err, fs.ErrPermission) {
		w.o.Say(fmt.Sprintf("%s of process %d (%s) may not be read by this user, and is absent; run as the process's user, or as root, to have it "+
			"(said once)", what, p.PID, p.Name))
		return
	}
	w.o.Say(fmt.Sprintf("%s of process %d (%s) can't be read: %v (said once)", what, p.PID, p.Name, err))
}

// follow samples at every tick.
func (w *watcher) follow(ctx context.Context) error {
	tick := time.NewTicker(w.o.Interval)
	defer tick.Stop()
	ended := w.o.Command.Done()
	w.began, w.cpu = time.Now(), machine.SelfCPU()
	var limit <-chan time.Time
	if w.o.Duration > 0 {
		timer := time.NewTimer(w.o.Duration)
		defer timer.Stop()
		limit = timer.C
	}
	for {
		err := w.sample()
		w.o.Command.Release()
		if err != nil {
			return err
		}
		if w.sum.Why = w.over(); w.sum.Why != "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ended:
			ended = nil
		case <-limit:
		case <-w.o.Command.reminded():
			w.o.Command.passOn(w.family)
		case <-tick.C:
		}
	}
}

// over tells why there is nothing more to do; nothing where there is.
func (w *watcher) over() string {
	switch {
	case w.o.MaxSamples > 0 && w.sum.Samples >= w.o.MaxSamples:
		return fmt.Sprintf("%d samples were asked for", w.o.MaxSamples)
	case w.o.Duration > 0 && time.Since(w.began) >= w.o.Duration:
		return fmt.Sprintf("%v were asked for", w.o.Duration)
	case len(w.alive) > 0 || !w.o.Command.ended():
		return ""
	}
	for _, m := range w.family.LookAtAll() { // who came after the last look, and before its parent's end
		w.welcome(m)
	}
	if len(w.alive) > 0 {
		return ""
	}
	return "the last process has ended"
}

// sample reads everybody once.
func (w *watcher) sample() error {
	for _, m := range w.family.Look() {
		w.welcome(m)
	}
	w.take(w.expensive.results())
	now := time.Now() // what was read of PSS was read before
	p := Point{At: now.Sub(w.began), PSS: w.pss}
	w.alive = slices.DeleteFunc(w.alive, func(who *process) bool { return !w.read(who, now, &p) })
	w.orphans = slices.DeleteFunc(w.orphans, reaped)
	if p.Processes == 0 {
		return w.gpus.failed()
	}
	w.sum.Samples++
	w.sum.PeakRSS = max(w.sum.PeakRSS, p.RSS)
	if !w.last.IsZero() {
		w.sum.Longest = max(w.sum.Longest, now.Sub(w.last))
	}
	w.last = now
	w.expensive.grown(now, p.RSS)
	w.expensive.read(now, w.alive)
	if w.o.Draw != nil {
		w.o.Draw(p)
	}
	return w.flush()
}

func (w *watcher) flush() error {
	if w.o.Rows == nil {
		return w.gpus.failed()
	}
	n, err := w.o.Rows.flush()
	w.sum.Rows += n
	return cmp.Or(err, w.gpus.failed())
}

// finish takes in the last pass over PSS. It may have the peak, also where the processes have ended since.
func (w *watcher) finish() error {
	w.expensive.stop()
	w.take(w.expensive.results())
	return w.gpus.failed()
}

// read reads a process into a row and the sums, and tells whether it is still there.
func (w *watcher) read(who *process, now time.Time, sum *Point) bool {
	if who.quick == nil {
		if !who.Alive() {
			w.drop(who)
			return false
		}
		sum.Processes++
		return true
	}
	if who.double {
		// Skip it for at least one sample: on a busy machine, a fork takes tens of milliseconds to start its program.
		waited := who.waited && time.Since(who.came) > doubt
		who.waited = true
		if !waited && !who.IsItself() && who.Alive() {
			return true
		}
		who.double = false
		who.rename()
		if w.isOurs(who.Process) {
			w.family.Drop(who.Member)
			return false
		}
		w.tell(who)
	}
	r := &w.reading
	*r = record.NewSample()
	if err := who.quick.Read(context.Background(), r); err != nil {
		if errors.Is(err, sample.ErrGone) {
			w.drop(who) // what was read of its PSS belongs to no row: rows are of living processes
			w.expensive.changed(now)
			return false
		}
		w.unreadable(who, "memory", err)
		sum.Processes++
		return true
	}
	if who.read != nil || now.Before(who.young) {
		who.rename()
	}
	sum.Processes++
	sum.RSS += r.RSS
	if w.o.Rows != nil {
		w.o.Rows.add(now, w.sum.Samples+1, who, r)
	}
	who.read = nil
	return true
}

func (w *watcher) drop(who *process) {
	w.gpus.leave(who)
	w.family.Drop(who.Member)
	if c := w.o.Command; c != nil && who.PID != c.PID() {
		w.orphans = append(w.orphans, who.PID)
	}
}

// rename looks what a process is called now: it may have become another program, and most do so soon.
func (p *process) rename() {
	if now, err := proc.Look(p.PID); err == nil && now.Start == p.Start {
		p.Name = now.Name
	}
}

// take takes in what a pass over the expensive sources came to. All who were read in it count for the peak: they were
// there at once.
func (w *watcher) take(all []reading) {
	sum := record.Absent
	for _, r := range all {
		switch {
		case r.err == nil:
			r.who.read = &r
			sum = max(sum, 0) + r.PSS
		case !errors.Is(r.err, sample.ErrGone):
			r.who.expensive = nil
			w.unreadable(r.who, "PSS and USS", r.err)
		}
	}
	if sum != record.Absent {
		w.pss = sum
		w.sum.PeakPSS = max(w.sum.PeakPSS, sum)
	}
}
