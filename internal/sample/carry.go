package sample

import (
	"sync"
	"time"

	"llmparity/internal/record"
)

// A total that exceeds the highest of its phase by one part in rowShare gets a row. PSS is read again if the total
// exceeds the highest reading by one part in readShare, or, once it has not grown for stillFor passes, by one part in
// stillShare. After as many passes it is also read if the bounds are further apart than one part in vagueShare.
const (
	rowBytes, rowShare = record.MiB, 500
	readShare          = 5
	stillShare         = 25
	stillFor           = 2
	vagueShare         = 100
)

// hiddenBytes is by how much the kernel's mark of the highest RSS must pass all that was read, for a peak between two
// readings to be believed: both counts may be off by some pages a processor.
const hiddenBytes = 2 * record.MiB

// carrier carries the last reading of PSS forward until the next one.
//
// To read PSS takes milliseconds, to read the size of a process microseconds. What a process has gained since PSS was
// read, and does not share (resident less shared pages), counts in full. Only the gain does: a forked process shares
// anonymous pages with its parent, and they are in the size of both.
//
// Shared pages that a process has gained may be new, or pages of others that it maps now too. The kernel's count of
// shared memory on the machine tells which. It is believed as far as the gains and losses of the processes allow; those
// are the bounds.
//
// The kernel also marks the highest RSS of each process. Where that passes all that was read, there was a peak between
// two readings. It is added to the total at the moment of the highest RSS that was read.
type carrier struct {
	mu        sync.Mutex
	processes map[identity]*process
	machine   func() int64 // shared memory on the machine

	shmem   int64     // the machine's shared memory when PSS was last read
	read    int64     // the highest total of the phase that was read
	highest int64     // the highest total of the phase, read or carried
	at      time.Time // of it; zero: at the phase's begin
	last    estimate  // the last one
	still   int       // for how many passes over sizes it has not grown
	unread  bool      // there is a process whose PSS was not read yet
}

// identity is a process's: a pid alone may be given out again.
type identity struct {
	pid   int
	start uint64
}

// process is what is known of a process of which PSS is read too.
type process struct {
	quick, expensive *member
	of               *group // quick's

	known           bool // PSS was read
	pss, uss        int64
	forked          int64 // anonymous bytes beyond its share in them: at most so much of a loss is no loss of the total
	private, shared int64 // when PSS was read

	kinds record.Kinds // of PSS, when it was read
	held  record.Kinds // at the highest moment of the phase

	size   record.Sample // as last read
	inPass bool          // it was read in this pass
	reset  bool          // the kernel's mark begins anew behind this pass

	top   int64    // the highest RSS that was read since the mark began
	atTop estimate // the total then
	mark  int64    // as last read
}

// estimate is a total that was carried, with its bounds.
type estimate struct{ pss, uss, read, low, high int64 }

// process gives what is known of the process of a source; nil where it is none's.
func (c *carrier) process(d record.Source) *process {
	if d.PID == 0 || !ofProcesses(d.Method) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := identity{d.PID, d.Start}
	if c.processes == nil {
		c.processes = map[identity]*process{}
	}
	p := c.processes[id]
	if p == nil {
		p = &process{mark: record.Absent, held: record.Kinds{Anonymous: record.Absent}}
		c.processes[id] = p
	}
	return p
}

// joins says that a member reads the process.
func (c *carrier) joins(p *process, m *member, g *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.method == record.MethodStatm {
		p.quick, p.of = m, g
	} else {
		p.expensive = m
	}
}

// quick gives what reads a process's size; nil where nothing does.
func (c *carrier) quick(p *process) (*member, *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.quick, p.of
}

// leaves says that a member reads it no more.
func (c *carrier) leaves(m *member) {
	if m.process == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := m.process
	if p.quick == m {
		p.quick = nil
	}
	if p.expensive == m {
		p.expensive, p.known = nil, false
	}
	if p.quick == nil && p.expensive == nil {
		for id, q := range c.processes {
			if q == p {
				delete(c.processes, id)
			}
		}
	}
}

// begin opens a pass.
func (c *carrier) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		p.inPass, p.reset = false, false
	}
}

// sized takes the size of a process.
func (c *carrier) sized(p *process, size *record.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.size, p.inPass = *size, true
}

// carry ends a pass over sizes: it fills the total in, where PSS was read of every process that has it, and tells
// whether the total passes the highest of the phase.
func (c *carrier) carry(t *record.Total) (higher bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var e estimate
	var rises, falls, kept int64
	n := 0
	c.unread = false
	for _, p := range c.processes {
		if !p.inPass || p.expensive == nil {
			continue
		}
		if !p.known {
			c.unread = true
			continue
		}
		n++
		gain := p.size.RSS - p.size.Shared - p.private
		e.pss += p.pss + gain
		e.uss += p.uss + gain
		e.read += p.pss
		kept += min(max(0, -gain), p.forked)
		rises, falls = rises+max(0, p.size.Shared-p.shared), falls+max(0, p.shared-p.size.Shared)
	}
	if n == 0 || c.unread {
		return false
	}
	e.low, e.high = e.pss-falls, e.pss+rises+kept
	shared := rises - falls
	if n > 1 {
		shared = min(max(c.machine()-c.shmem, -falls), rises)
	}
	e.pss += shared
	if t.RSS != record.Absent { // which counts shared pages in full
		e.pss, e.high = min(e.pss, t.RSS), min(e.high, t.RSS)
	}
	e.uss, e.low = min(e.uss, e.pss), min(e.low, e.pss)
	if e.pss > c.last.pss+c.last.pss/rowShare {
		c.still = 0
	} else {
		c.still++
	}
	c.last = e
	for _, p := range c.processes {
		if p.inPass && p.known && p.size.RSS > p.top {
			p.top, p.atTop = p.size.RSS, e
		}
	}
	t.PSS, t.USS, t.Carried = e.pss, e.uss, record.Carried{Read: e.read, Low: e.low, High: e.high}
	if e.pss > c.highest+max(rowBytes, c.highest/rowShare) {
		c.highest = e.pss
		c.hold(t.End, shared)
		return true
	}
	return false
}

// hold keeps what each process holds now, as the total was never higher in this phase. Growth of shared memory is
// attributed to the process that maps most of it.
func (c *carrier) hold(at time.Time, shared int64) {
	c.at = at
	var sharer *process
	for _, p := range c.processes {
		p.held = record.Kinds{Anonymous: record.Absent}
		if !p.inPass || !p.known || p.kinds.Anonymous == record.Absent {
			continue
		}
		p.held = p.kinds
		if p.size.Shared == record.Absent {
			continue // PSS was just read
		}
		p.held.Anonymous += p.size.RSS - p.size.Shared - p.private
		if sharer == nil || p.size.Shared > sharer.size.Shared {
			sharer = p
		}
	}
	if sharer != nil {
		sharer.held.Shared += shared
	}
}

// wants tells whether a process is new, and whether the total has left what was read behind.
func (c *carrier) wants() (unread, surprising bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	higher := c.last.high - c.read
	stands := c.still >= stillFor && (higher > c.read/stillShare || c.last.high-c.last.low > c.last.high/vagueShare)
	return c.unread, stands || higher > c.read/readShare
}

// expensive takes a reading of PSS, and the sizes right before and behind it.
func (c *carrier) expensive(p *process, r, before, behind *record.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.known, p.inPass = true, true
	p.pss, p.uss, p.forked, p.kinds = r.PSS, r.USS, r.Forked, r.Kinds
	// A process may grow while PSS is read. Its RSS, read with PSS, tells how far it had grown then: the mean of the
	// two sizes would count growth twice, or not at all.
	part := 0.5
	if grown := behind.RSS - before.RSS; grown != 0 {
		part = min(max(float64(r.RSS-before.RSS)/float64(grown), 0), 1)
	}
	between := func(one, other int64) int64 { return one + int64(part*float64(other-one)) }
	p.shared = between(before.Shared, behind.Shared)
	p.private = between(before.RSS-before.Shared, behind.RSS-behind.Shared)
	p.size = *r
}

// resets says that the kernel's mark of a process begins anew behind the pass that goes on.
func (c *carrier) resets(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.reset = true
}

// done ends a pass over PSS. Where the kernel's marks say that there was a higher peak since the last one, it gives
// that too.
func (c *carrier) done(t *record.Total) (hidden record.Total, was bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shmem = c.machine()
	all := estimate{t.PSS, t.USS, t.PSS, t.PSS, t.PSS}
	c.last, c.unread = all, false
	var peak estimate
	var peaked *process
	var more int64
	for _, p := range c.processes {
		if !p.inPass {
			continue
		}
		if p.size.RSS > p.top {
			p.top, p.atTop = p.size.RSS, all
		}
		excess := p.size.HWM - max(p.top, p.mark)
		if p.size.HWM != record.Absent && p.mark != record.Absent && excess > hiddenBytes && p.atTop.pss > 0 {
			more += excess
			if e := p.atTop; e.pss+excess > peak.pss {
				peak, peaked = estimate{e.pss + excess, e.uss + excess, e.read, e.low, e.high}, p
			}
		}
		p.mark = p.size.HWM
		if p.reset {
			p.mark, p.top, p.atTop = 0, p.size.RSS, all
		}
	}
	before := max(c.highest, c.read)
	if t.PSS > c.highest {
		c.hold(t.End, 0)
	}
	c.read, c.highest = max(c.read, t.PSS), max(c.highest, t.PSS)
	if peak.pss <= before+rowBytes {
		return record.Total{}, false
	}
	if peaked.held.Anonymous != record.Absent {
		peaked.held.Anonymous += peak.pss - c.highest
	}
	c.highest = peak.pss
	hidden = record.Total{Sample: record.NewSample(), Method: record.MethodPeakMark, Processes: t.Processes}
	hidden.Begin, hidden.End = t.Begin, t.End
	hidden.PSS, hidden.USS = peak.pss, peak.uss
	hidden.Carried = record.Carried{Read: peak.read, Low: peak.low, High: peak.high + more}
	return hidden, true
}

// phase ends a phase: it tells what each process held at its highest moment, and forgets it.
func (c *carrier) phase(tell func(*member, record.Sample)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		if values := p.held.Values(); !c.at.IsZero() && p.expensive != nil && values != nil {
			r := record.NewSample()
			r.Begin, r.End, r.Values = c.at, c.at, values
			tell(p.expensive, r)
		}
		p.held.Anonymous = record.Absent
	}
	c.read, c.highest, c.at = c.last.pss, c.last.pss, time.Time{}
}
