package sample

import (
	"testing"
	"time"

	"llmparity/internal/record"
)

const mib = record.MiB

// browserOf is a carrier of two processes whose sizes a test sets, and of a machine with shared memory.
type browserOf struct {
	carrier
	t                  *testing.T
	page, gpu          *process
	onTheMachine       int64
	quickly, expensive group
}

func newBrowser(t *testing.T) *browserOf {
	b := &browserOf{t: t, quickly: group{method: record.MethodStatm},
		expensive: group{method: record.MethodSmapsRollup}}
	b.machine = func() int64 { return b.onTheMachine }
	b.page, b.gpu = b.join(1), b.join(2)
	return b
}

func (b *browserOf) join(pid int) *process {
	m := &member{}
	b.carrier.join(record.Source{PID: pid, Method: record.MethodStatm}, m, &b.quickly)
	b.carrier.join(record.Source{PID: pid, Method: record.MethodSmapsRollup}, &member{}, &b.expensive)
	return m.process
}

func size(private, shared int64) *record.Sample {
	s := record.NewSample()
	s.RSS, s.Shared = (private+shared)*mib, shared*mib
	return &s
}

// read reads the PSS of a process that holds so much.
func (b *browserOf) read(p *process, pss, private, shared, hwm, forked int64) {
	r := *size(private, shared)
	r.PSS, r.USS, r.HWM, r.Forked = pss*mib, private*mib, hwm*mib, forked*mib
	r.Kinds = record.Kinds{Anonymous: private * mib, Shared: (pss - private) * mib}
	b.carrier.expensive(p, &r, size(private, shared), size(private, shared))
}

func (b *browserOf) pass(pss int64) (record.Total, bool) {
	return b.done(&record.Total{Sample: record.Sample{PSS: pss * mib, USS: pss * mib}, Processes: 2})
}

// again reads PSS as at the start, with these highest RSS.
func (b *browserOf) again(page, gpu int64) (record.Total, bool) {
	b.begin()
	b.read(b.page, 100, 100, 0, page, 0)
	b.read(b.gpu, 100, 100, 0, gpu, 0)
	return b.pass(200)
}

// carried is a pass over sizes.
func (b *browserOf) carried(page, gpu *record.Sample) (t record.Total, higher bool) {
	b.begin()
	b.sized(b.page, page)
	b.sized(b.gpu, gpu)
	t = record.Total{Sample: record.NewSample()}
	t.End = time.Now()
	higher = b.carry(&t)
	return t, higher
}

// sizes is what a pass over sizes carries, in MiB.
func (b *browserOf) sizes(page, gpu *record.Sample) (pss, low, high int64) {
	t, _ := b.carried(page, gpu)
	if t.PSS == record.Absent {
		return record.Absent, record.Absent, record.Absent
	}
	return t.PSS / mib, t.Carried.Low / mib, t.Carried.High / mib
}

// start has both processes at 100 MiB of their own, and PSS read.
func (b *browserOf) start() {
	b.begin()
	b.read(b.page, 100, 100, 0, 100, 8)
	b.read(b.gpu, 100, 100, 0, 100, 0)
	b.pass(200)
}

func (b *browserOf) want(what string, page, gpu *record.Sample, pss, low, high int64) {
	b.t.Helper()
	if p, l, h := b.sizes(page, gpu); p != pss || l != low || h != high {
		b.t.Errorf("%s: %d MiB (%d to %d), want %d (%d to %d)", what, p, l, h, pss, low, high)
	}
}

func TestPrivateGrowthCountsInFull(t *testing.T) {
	b := newBrowser(t)
	b.start()
	b.want("the page gains 50 and the GPU process 30", size(150, 0), size(130, 0), 280, 280, 280)
	b.want("the page loses what a forked process may keep", size(80, 0), size(100, 0), 180, 180, 188)
}

func TestGrowthWhilePSSIsReadCountsOnce(t *testing.T) {
	for name, grown := range map[string]int64{"before PSS was read": 100, "in between": 60, "behind it": 0} {
		b := newBrowser(t)
		b.begin()
		r := *size(100+grown, 0)
		r.PSS, r.USS, r.HWM, r.Forked = (100+grown)*mib, (100+grown)*mib, 200*mib, 0
		b.carrier.expensive(b.page, &r, size(100, 0), size(200, 0))
		b.read(b.gpu, 100, 100, 0, 100, 0)
		b.pass(200 + grown)
		b.want("the page grew by 100 "+name, size(200, 0), size(100, 0), 300, 300, 300)
	}
}

func TestSharedMemoryCountsOnce(t *testing.T) {
	b := newBrowser(t)
	b.start()
	b.onTheMachine = 40 * mib
	b.want("the page fills shared memory", size(100, 40), size(100, 0), 240, 200, 240)
	b.want("the GPU process maps it too", size(100, 40), size(100, 40), 240, 200, 280)
	b.begin()
	b.read(b.page, 120, 100, 40, 140, 0)
	b.read(b.gpu, 120, 100, 40, 140, 0)
	b.pass(240)
	b.onTheMachine = 0
	b.want("both give it back", size(100, 0), size(100, 0), 200, 160, 240)
}

func TestMemoryIsNeverNegative(t *testing.T) {
	b := newBrowser(t)
	b.begin()
	for _, p := range []*process{b.page, b.gpu} { // they unmap files while PSS is read
		r := *size(1, 0)
		r.PSS, r.USS = mib, mib
		b.carrier.expensive(p, &r, size(1, 40), size(1, 40))
	}
	b.pass(2)
	b.want("no file is mapped any more", size(1, 0), size(1, 0), 2, 0, 2)
	b.leaves(b.gpu.cheap)
	b.leaves(b.gpu.expensive)
	b.begin()
	b.sized(b.page, size(1, 0))
	total := record.Total{Sample: record.NewSample()}
	b.carry(&total)
	if total.PSS != 0 || total.USS != 0 || total.Carried.Low != 0 {
		t.Errorf("one process: %+v", total)
	}
}

func TestMemoryOfOtherProgramsDoesNotCount(t *testing.T) {
	b := newBrowser(t)
	b.start()
	b.onTheMachine = 500 * mib
	b.want("another program takes shared memory", size(100, 0), size(100, 0), 200, 200, 200)
}

func TestUnreadProcessIsNotCarried(t *testing.T) {
	b := newBrowser(t)
	b.begin()
	b.read(b.page, 100, 100, 0, 100, 0)
	b.pass(100)
	if pss, _, _ := b.sizes(size(100, 0), size(100, 0)); pss != record.Absent {
		t.Errorf("carried %d MiB although the PSS of a process was never read", pss)
	}
	if unread, _ := b.wants(); !unread {
		t.Error("PSS of the new process is not requested")
	}
}

func TestKernelMarkShowsHiddenPeak(t *testing.T) {
	b := newBrowser(t)
	b.start()
	b.want("quiet", size(110, 0), size(100, 0), 210, 210, 210)
	hidden, was := b.again(400, 100) // 290 more than was ever seen
	if !was || hidden.Method != record.MethodPeakMark || hidden.PSS != 500*mib {
		t.Fatalf("hidden peak: %v, %s, %d MiB; want 500 MiB by vm_hwm", was, hidden.Method, hidden.PSS/mib)
	}
	if c := hidden.Carried; c.Low != 210*mib || c.High != 500*mib {
		t.Errorf("bounds %d to %d MiB, want 210 to 500", c.Low/mib, c.High/mib)
	}
	if _, again := b.again(400, 100); again {
		t.Error("the same mark yields a second peak")
	}
}

func TestPhaseStartsWithoutEarlierPeak(t *testing.T) {
	b := newBrowser(t)
	b.start()
	if _, higher := b.carried(size(300, 0), size(100, 0)); !higher {
		t.Error("no row for a total above the highest")
	}
	b.again(300, 100)
	b.phase(func(*member, record.Sample) {})
	if _, higher := b.carried(size(150, 0), size(100, 0)); !higher {
		t.Error("no row for the highest total of the next phase")
	}
}

func TestPhaseReportsMemoryAtItsPeak(t *testing.T) {
	b := newBrowser(t)
	b.start()
	b.phase(func(*member, record.Sample) { t.Error("peak at the start of the phase") })
	b.onTheMachine = 40 * mib
	b.want("both grow", size(150, 40), size(130, 40), 320, 280, 360)
	b.onTheMachine = 0
	b.want("and shrink", size(100, 0), size(100, 0), 200, 200, 200)
	b.again(270, 170) // 80 more than was ever seen
	reported := map[*member]record.Kinds{}
	b.phase(func(m *member, r record.Sample) {
		reported[m] = record.Kinds{Anonymous: int64(r.Values[0].Value) / mib, Shared: int64(r.Values[1].Value) / mib}
	})
	page, gpu := reported[b.page.expensive], reported[b.gpu.expensive]
	if page != (record.Kinds{Anonymous: 230}) && page != (record.Kinds{Anonymous: 230, Shared: 40}) ||
		gpu.Anonymous != 130 ||
		page.Shared+gpu.Shared != 40 {
		t.Errorf("at the peak the page has %+v, the GPU process %+v", page, gpu)
	}
	b.phase(func(*member, record.Sample) { t.Error("peak reported twice") })
}

func TestPaceSkipsMissedTicksAndRests(t *testing.T) {
	begin := time.Now()
	var p pace
	p.set(begin, time.Second)
	if p.due(begin.Add(999*time.Millisecond)) || !p.due(begin.Add(time.Second)) {
		t.Error("not due after its interval")
	}
	p.next(begin.Add(5500 * time.Millisecond))
	if want := begin.Add(6500 * time.Millisecond); !p.at.Equal(want) {
		t.Errorf("next at %v, want %v: what was missed is left out", p.at.Sub(begin), want.Sub(begin))
	}
	p.rest(begin.Add(6500*time.Millisecond), 100*time.Millisecond)
	if want := begin.Add(26500 * time.Millisecond); !p.at.Equal(want) {
		t.Errorf("after 100 ms of work next at %v, want %v: a two-hundredth of a core", p.at.Sub(begin),
			want.Sub(begin))
	}
}
