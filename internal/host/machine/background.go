package machine

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/record"
)

// hertz is the unit of CPU times in /proc, on every architecture.
const hertz = 100

// work is what CPUs and processes have done since they started, in seconds of CPU time.
type work struct {
	at           time.Time
	busy, stolen float64
	processes    map[int]process
}

// process is a process in /proc/PID/stat.
type process struct {
	name   string
	parent int
	start  uint64
	worked float64
	reaped float64 // what children that have ended did
}

// work reads the current counters.
func (f files) work() work {
	w := work{at: time.Now(), processes: map[int]process{}}
	w.busy, w.stolen = f.busy()
	all, _ := f.proc.AllProcs() // those that can be read
	for _, p := range all {
		s, err := p.Stat()
		if err != nil {
			continue // it has ended
		}
		name := strings.ToValidUTF8(s.Comm, "?")
		if s.PPID == 2 { // kernel threads: the purpose without the CPU
			name, _, _ = strings.Cut(strings.ReplaceAll(name, ":", "/"), "/")
		}
		w.processes[p.PID] = process{name: name, parent: s.PPID, start: s.Starttime,
			worked: float64(s.UTime+s.STime) / hertz, reaped: float64(s.CUTime+s.CSTime) / hertz}
	}
	return w
}

// busy returns the seconds that all CPUs have worked, and those that a hypervisor has given to others.
func (f files) busy() (busy, stolen float64) {
	s, _ := f.proc.Stat() // zeros if it can't be read
	c := s.CPUTotal
	return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ, c.Steal
}

// ours reports whether a process is self or its descendant.
func (w work) ours(pid, self int) bool {
	for range 64 { // a limit, in case of a cycle
		if pid == self {
			return true
		}
		p, ok := w.processes[pid]
		if !ok || pid <= 1 {
			return false
		}
		pid = p.parent
	}
	return false
}

// own returns what self and its descendants did, including reaped ones.
func (w work) own(self int) (seconds float64) {
	for pid, p := range w.processes {
		if w.ours(pid, self) {
			seconds += p.worked + p.reaped
		}
	}
	return seconds
}

// heardMost limits the list of the busiest programs.
const heardMost = 5

// since returns what other processes than self and its descendants did since an earlier moment; nil if unknown.
func (w work) since(earlier work, self int) *record.Background {
	seconds := w.at.Sub(earlier.at).Seconds()
	if w.busy == 0 || w.busy < earlier.busy || seconds <= 0 {
		return nil
	}
	all := w.busy - earlier.busy - max(0, w.own(self)-earlier.own(self))
	programs, seen := map[string]*record.BusyProcess{}, 0.0
	for pid, p := range w.processes {
		did := p.worked
		if before, ok := earlier.processes[pid]; ok && before.start == p.start {
			did -= before.worked
		}
		if did <= 0 || w.ours(pid, self) {
			continue
		}
		if programs[p.name] == nil {
			programs[p.name] = &record.BusyProcess{Name: p.name}
		}
		programs[p.name].Processes++
		programs[p.name].Cores += did / seconds
		seen += did
	}
	// The total and the processes are not read at the same time.
	b := &record.Background{Seconds: round(seconds), Cores: round(max(all, seen) / seconds),
		Stolen: round(max(0, w.stolen-earlier.stolen) / seconds)}
	for _, p := range programs {
		p.Cores = round(p.Cores)
	}
	busiest := slices.SortedFunc(maps.Values(programs), func(a, b *record.BusyProcess) int {
		return cmp.Or(cmp.Compare(b.Cores, a.Cores), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range busiest[:min(heardMost, len(busiest))] {
		b.Busiest = append(b.Busiest, *p)
	}
	return b
}

// round rounds to three digits, the resolution of ticks.
func round(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 3, 64), 64)
	return r
}
