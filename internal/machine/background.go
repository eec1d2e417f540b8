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

// work is what CPUs and processes have done since they started.
type work struct {
	at           time.Time
	busy, stolen uint64
	processes    map[int]process
}

// process is a process in /proc/PID/stat.
type process struct {
	name   string
	parent int
	start  uint64
	ticks  uint64
	reaped uint64 // ticks of children that have ended
}

// work reads the current counters.
func (f files) work() work {
	w := work{at: time.Now(), processes: map[int]process{}}
	w.busy, w.stolen = parseStat(f.text("proc/stat"))
	for _, dir := range f.all("proc/[0-9]*") {
		if p, pid, ok := parseProcess(f.text(dir, "stat")); ok {
			w.processes[pid] = p
		}
	}
	return w
}

// parseStat parses the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
func parseStat(text string) (busy, stolen uint64) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, 0
	}
	number := func(i int) uint64 {
		if i >= len(fields) {
			return 0 // older kernels lack steal
		}
		n, _ := strconv.ParseUint(fields[i], 10, 60) // 0 if it is not a number
		return n
	}
	return number(1) + number(2) + number(3) + number(6) + number(7), number(8)
}

// parseProcess parses a process's stat line. The name is in parentheses and may contain any character.
func parseProcess(text string) (p process, pid int, ok bool) {
	open, closed := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 1 || closed < open {
		return p, 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(text[:open]))
	rest := strings.Fields(text[closed+1:])
	if err != nil || pid <= 0 || len(rest) < 20 {
		return p, 0, false
	}
	parent, err := strconv.Atoi(rest[1])
	user, err2 := strconv.ParseUint(rest[11], 10, 60)
	system, err3 := strconv.ParseUint(rest[12], 10, 60)
	childUser, err4 := strconv.ParseUint(rest[13], 10, 60)
	childSystem, err5 := strconv.ParseUint(rest[14], 10, 60)
	start, err6 := strconv.ParseUint(rest[19], 10, 64)
	if cmp.Or(err, err2, err3, err4, err5, err6) != nil {
		return p, 0, false
	}
	name := strings.ToValidUTF8(text[open+1:closed], "?")
	if parent == 2 { // kernel threads: the purpose without the CPU
		name, _, _ = strings.Cut(strings.ReplaceAll(name, ":", "/"), "/")
	}
	return process{name: name, parent: parent, start: start, ticks: user + system, reaped: childUser + childSystem},
		pid, true
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

// own returns the ticks of self and its descendants, including reaped ones.
func (w work) own(self int) (ticks uint64) {
	for pid, p := range w.processes {
		if w.ours(pid, self) {
			ticks += p.ticks + p.reaped
		}
	}
	return ticks
}

// heardMost limits the list of the busiest programs.
const heardMost = 5

// since returns what other processes than self and its descendants did since an earlier moment; nil if unknown.
func (w work) since(earlier work, self int) *record.Background {
	seconds := w.at.Sub(earlier.at).Seconds()
	if w.busy == 0 || w.busy < earlier.busy || seconds <= 0 {
		return nil
	}
	cores := func(ticks uint64) float64 { return round(float64(ticks) / hertz / seconds) }
	all := w.busy - earlier.busy
	if now, before := w.own(self), earlier.own(self); now > before {
		all -= min(all, now-before)
	}
	programs, ticks := map[string]*record.BusyProcess{}, map[string]uint64{}
	for pid, p := range w.processes {
		did := p.ticks
		if before, ok := earlier.processes[pid]; ok && before.start == p.start {
			did -= min(did, before.ticks)
		}
		if did == 0 || w.ours(pid, self) {
			continue
		}
		if programs[p.name] == nil {
			programs[p.name] = &record.BusyProcess{Name: p.name}
		}
		programs[p.name].Processes++
		ticks[p.name] += did
	}
	var seen uint64
	for _, did := range ticks {
		seen += did
	}
	b := &record.Background{Seconds: round(seconds), Cores: cores(max(all, seen))} // they are not read at the same time
	if w.stolen > earlier.stolen {
		b.Stolen = cores(w.stolen - earlier.stolen)
	}
	for name, p := range programs {
		p.Cores = cores(ticks[name])
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
