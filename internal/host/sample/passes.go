package sample

import "llmparity/internal/record"

// Passes carries PSS forward, as a Sampler does, for a program that reads processes itself. In each pass it reads the
// size of every process, or the PSS of every process. It is for one goroutine.
type Passes struct{ carry carrier }

// NewPasses returns passes over no process.
func NewPasses() *Passes { return &Passes{carry: carrier{machine: sharedMemory}} }

// Read is a process of Passes.
type Read struct {
	of               *Passes
	cheap, expensive *member
}

// Add adds a process whose PSS is read.
func (p *Passes) Add(pid int, start uint64) *Read {
	r := &Read{of: p, cheap: &member{}, expensive: &member{}}
	p.carry.join(record.Source{PID: pid, Start: start, Method: record.MethodStatm}, r.cheap, nil)
	p.carry.join(record.Source{PID: pid, Start: start, Method: record.MethodSmapsRollup}, r.expensive, nil)
	return r
}

// Drop removes the process.
func (r *Read) Drop() {
	r.of.carry.leaves(r.expensive)
	r.of.carry.leaves(r.cheap)
}

// Sized takes the size of the process in a pass over sizes.
func (r *Read) Sized(size *record.Sample) { r.of.carry.sized(r.cheap.process, size) }

// PSS takes a reading of PSS, and the sizes just before and after it.
func (r *Read) PSS(pss, before, behind *record.Sample) {
	r.of.carry.expensive(r.cheap.process, pss, before, behind)
}

// Begin begins a pass.
func (p *Passes) Begin() { p.carry.begin() }

// EndSizes ends a pass over sizes. It completes the total, which has the sum of RSS, unless the PSS of a process has
// not been read yet.
func (p *Passes) EndSizes(t *record.Total) { p.carry.carry(t) }

// EndPSS ends a pass over PSS, whose sum the total has. If the highest RSS that the kernel kept shows a higher total
// between two passes, it returns that one.
func (p *Passes) EndPSS(t *record.Total) (hidden record.Total, was bool) { return p.carry.done(t) }
