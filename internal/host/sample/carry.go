package sample

import (
	"maps"
	"sync"
	"time"

	"llmparity/internal/record"
)

// A total that exceeds the highest of its phase by 1/rowShare gets a row. PSS is read again if the total exceeds the
// highest reading by 1/readShare or, if it has not grown for stillFor passes, by 1/stillShare. Then it is also read if
// the bounds are further apart than 1/vagueShare.
const (
	rowBytes, rowShare = record.MiB, 500
	readShare          = 5
	stillShare         = 25
	stillFor           = 2
	vagueShare         = 100
	staleShare         = 50 // what is beyond it is read again, if there is time for it
)

// hiddenBytes is how far the kernel's highest RSS must exceed all readings to count as a hidden peak: both may be off
// by some pages for each CPU.
const hiddenBytes = 2 * record.MiB

// carrier carries the last reading of PSS forward until the next one.
//
// Reading PSS takes milliseconds; reading the size of a process takes microseconds. The growth of private memory (RSS
// without shared pages) since the last reading of PSS counts in full. Only growth counts, because a forked process
// shares anonymous pages with its parent, and both sizes include them.
//
// New shared pages may be new memory, or pages of other processes. The machine's total of shared memory decides, within
// the bounds that the growth of the processes sets.
//
// The kernel also records the highest RSS of each process. If that exceeds all readings, there was a peak between two
// of them. It is added to the total at the moment of the highest RSS that was read.
type carrier struct {
	mu        sync.Mutex
	processes map[identity]*process
	machine   func() int64 // shared memory on the machine

	shmem   int64     // shared memory on the machine when PSS was last read
	read    int64     // highest total read in the phase
	highest int64     // highest total of the phase, read or carried
	at      time.Time // time of highest; zero: start of the phase
	last    estimate  // last estimate
	still   int       // passes without growth
	unread  bool      // PSS of a process has not been read yet
	left    bool      // a process has ended since PSS was last read
}

// identity identifies a process, because pids are reused.
type identity struct {
	pid   int
	start uint64
}

// process is a process whose PSS is read.
type process struct {
	cheap, expensive *member
	of               *group // group of cheap

	known           bool // PSS was read
	pss, uss        int64
	forked          int64 // anonymous bytes beyond its share: freeing them may not lower the total
	private, shared int64 // when PSS was read

	kinds record.Kinds // components of PSS, when it was read
	held  record.Kinds // components at the highest moment of the phase

	size   record.Sample // last reading
	inPass bool          // read in this pass
	reset  bool          // the kernel's highest RSS was reset in this pass

	top   int64    // highest RSS read since the reset
	atTop estimate // total at that moment
	mark  int64    // the kernel's highest RSS, last reading
}

// estimate is a carried total with its bounds.
type estimate struct{ pss, uss, read, low, high int64 }

// join says that m reads the process of a source, unless it is not one that PSS is carried for.
func (c *carrier) join(d record.Source, m *member, g *group) {
	if d.PID == 0 || !ofProcesses(d.Method) {
		return
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
	m.process = p
	if d.Method == record.MethodStatm {
		p.cheap, p.of = m, g
	} else {
		p.expensive = m
	}
}

// cheap returns what reads a process's size, or nil.
func (c *carrier) cheap(p *process) (*member, *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.cheap, p.of
}

// leaves says that m no longer reads its process.
func (c *carrier) leaves(m *member) {
	if m.process == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := m.process
	c.left = true
	if p.cheap == m {
		p.cheap = nil
	}
	if p.expensive == m {
		p.expensive, p.known = nil, false
	}
	if p.cheap == nil && p.expensive == nil {
		maps.DeleteFunc(c.processes, func(_ identity, q *process) bool { return q == p })
	}
}

// begin starts a pass.
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

// carry ends a pass over sizes. It completes the total if PSS is known of every process, and reports whether the total
// exceeds the highest of the phase.
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
	if t.RSS != record.Absent { // RSS counts shared pages in full
		e.pss, e.high = min(e.pss, t.RSS), min(e.high, t.RSS)
	}
	// A process that exits frees memory between the readings of a size, and more seems to fall than there was.
	e.pss = max(0, e.pss)
	e.uss, e.low, e.high = max(0, min(e.uss, e.pss)), max(0, min(e.low, e.pss)), max(e.high, e.pss)
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

// hold keeps the components of each process at a new highest total. Growth of shared memory goes to the process that
// maps most of it.
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

// wants reports whether a process is new, and whether the total has left the last reading behind.
func (c *carrier) wants() (unread, surprising bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	higher := c.last.high - c.read
	stands := c.still >= stillFor && (higher > c.read/stillShare || c.last.high-c.last.low > c.last.high/vagueShare)
	return c.unread, stands || higher > c.read/readShare
}

// stale reports whether the total has grown beyond the highest reading, or a process has ended since the last one.
func (c *carrier) stale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left || c.last.high > c.read+c.read/staleShare
}

// expensive takes a reading of PSS, and the sizes just before and after it.
func (c *carrier) expensive(p *process, r, before, behind *record.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.known, p.inPass = true, true
	p.pss, p.uss, p.forked, p.kinds = r.PSS, r.USS, r.Forked, r.Kinds
	// A process may grow during the reading. Its RSS in the same reading shows by how much.
	part := 0.5
	if grown := behind.RSS - before.RSS; grown != 0 {
		part = min(max(float64(r.RSS-before.RSS)/float64(grown), 0), 1)
	}
	between := func(one, other int64) int64 { return one + int64(part*float64(other-one)) }
	p.shared = between(before.Shared, behind.Shared)
	p.private = between(before.RSS-before.Shared, behind.RSS-behind.Shared)
	p.size = *r
}

// resets says that the kernel's highest RSS is reset in this pass.
func (c *carrier) resets(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.reset = true
}

// done ends a pass over PSS. If the kernel's highest RSS shows a hidden peak, it returns that total.
func (c *carrier) done(t *record.Total) (hidden record.Total, was bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shmem = c.machine()
	all := estimate{t.PSS, t.USS, t.PSS, t.PSS, t.PSS}
	c.last, c.unread, c.left = all, false, false
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

// phase ends a phase: it reports the components at its highest moment, and resets them.
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
