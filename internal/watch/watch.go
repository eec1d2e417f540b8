// Package watch follows the memory of processes that somebody else runs, or of a command, and writes it down as rows.
//
// Who is watched is found by name, by pid, or is the command that was started, each with all its descendants, those that come later
// too. Resident and virtual size are read at every tick; proportional and unique size, which take a thousand times as long, more rarely,
// in a goroutine of their own. It sees what package proc sees: no memory of a GPU, and nobody who comes and goes between two ticks.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample"
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

	Rows *Rows             // nil: none are written
	Say  func(line string) // what happens
	Draw func(p Point)     // every sample; may be nil
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
}

// watcher is a watching that goes on.
type watcher struct {
	o      Options
	family *proc.Family
	alive  []*process
	dear   *dear
	sum    Summary

	began, last time.Time
	cpu         time.Duration
	pss         int64         // of the last pass over all
	reading     record.Sample // of the moment: no allocation at the sampling rate
	said        map[string]bool
}

// process is one that is watched.
type process struct {
	*proc.Member
	quick sample.Source // nil: may not be read
	dear  sample.Source // nil: may not be read, or is not had here
	read  *reading      // of the dear one, not yet written
	young time.Time     // until when it may become another program
}

// Run watches until the last process has ended, the limits are reached, or the context is done; its cause is then the error. What was
// seen until then is in the summary in either case.
func Run(ctx context.Context, o Options) (Summary, error) {
	w := &watcher{o: o, family: proc.NewFamily(), pss: record.Absent, said: map[string]bool{}}
	w.sum.PeakPSS = record.Absent
	w.dear = newDear(o.PSS, o.Interval)
	defer func() {
		w.dear.stop() // before what it reads is closed
		w.family.Close()
	}()
	err := w.find(ctx)
	if err == nil {
		err = w.follow(ctx)
	}
	if !w.began.IsZero() {
		w.sum.Length = time.Since(w.began)
		w.sum.CPU = selfCPU() - w.cpu
	}
	if o.Command == nil {
		return w.sum, err
	}
	return w.sum, w.leave(ctx, err)
}

// leave waits for a command that goes on unwatched, and ends one where something went wrong.
func (w *watcher) leave(ctx context.Context, err error) error {
	c := w.o.Command
	c.Release()
	if err == nil && !c.ended() {
		w.o.Say(w.sum.Why + ": the command goes on unwatched; waiting for it to end")
		select {
		case <-c.Done():
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		c.end(w.family, err)
	}
	return err
}

// find finds the first processes.
func (w *watcher) find(ctx context.Context) error {
	switch {
	case w.o.Command != nil:
		m, err := w.family.Add(w.o.Command.PID())
		if err == nil {
			w.welcome(m)
		}
		return nil // it may have ended already
	case len(w.o.PIDs) > 0:
		return w.findPIDs()
	}
	return w.findName(ctx)
}

func (w *watcher) findPIDs() error {
	for _, pid := range w.o.PIDs {
		m, err := w.family.Add(pid)
		if err != nil {
			return fault.Wrap(fault.NothingToWatch, err, "`ps ax` lists what runs", "can't watch process %d", pid)
		}
		w.welcome(m)
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

// welcome takes in a process that has come.
func (w *watcher) welcome(m *proc.Member) {
	p := &process{Member: m}
	if m.Young() {
		p.young = time.Now().Add(time.Second)
	}
	if m.Err != nil {
		w.unreadable(p, "memory", m.Err)
	}
	for i, s := range m.Sources {
		if i == 0 {
			p.quick = s
		} else {
			p.dear = s
		}
	}
	w.alive = append(w.alive, p)
	w.sum.Processes++
	w.dear.changed(time.Now())
	const enough = 20 // lines
	switch {
	case w.sum.Processes < enough:
		w.o.Say(fmt.Sprintf("watching process %d (%s)", m.PID, m.Name))
	case w.sum.Processes == enough:
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
	w.began, w.cpu = time.Now(), selfCPU()
	for {
		err := w.sample(time.Now())
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
	return "the last process has ended"
}

// sample reads everybody once.
func (w *watcher) sample(now time.Time) error {
	for _, m := range w.family.Look() {
		w.welcome(m)
	}
	w.take(w.dear.results())
	p := Point{At: now.Sub(w.began), PSS: w.pss}
	w.alive = slices.DeleteFunc(w.alive, func(who *process) bool { return !w.read(who, now, &p) })
	if p.Processes == 0 {
		return nil
	}
	w.sum.Samples++
	w.sum.PeakRSS = max(w.sum.PeakRSS, p.RSS)
	if !w.last.IsZero() {
		w.sum.Longest = max(w.sum.Longest, now.Sub(w.last))
	}
	w.last = now
	w.dear.grown(now, p.RSS)
	w.dear.read(now, w.alive)
	if w.o.Draw != nil {
		w.o.Draw(p)
	}
	if w.o.Rows == nil {
		return nil
	}
	return w.o.Rows.flush()
}

// read reads a process into a row and the sums, and tells whether it is still there.
func (w *watcher) read(who *process, now time.Time, sum *Point) bool {
	if who.quick == nil {
		if !who.Alive() {
			w.family.Drop(who.Member)
			return false
		}
		sum.Processes++
		return true
	}
	r := &w.reading
	*r = record.NewSample()
	if err := who.quick.Read(context.Background(), r); err != nil {
		if errors.Is(err, sample.ErrGone) {
			w.family.Drop(who.Member)
			w.dear.changed(now)
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
		w.sum.Rows++
	}
	who.read = nil
	return true
}

// rename looks what a process is called now: it may have become another program, and most do so soon.
func (p *process) rename() {
	if now, err := proc.Look(p.PID); err == nil && now.Start == p.Start {
		p.Name = now.Name
	}
}

// take takes in what a pass over the dear sources came to.
func (w *watcher) take(all []reading) {
	sum := record.Absent
	for _, r := range all {
		switch {
		case r.err == nil:
			r.who.read = &r
			sum = max(sum, 0) + r.PSS
		case !errors.Is(r.err, sample.ErrGone):
			r.who.dear = nil
			w.unreadable(r.who, "PSS and USS", r.err)
		}
	}
	if sum != record.Absent {
		w.pss = sum
		w.sum.PeakPSS = max(w.sum.PeakPSS, sum)
	}
}
