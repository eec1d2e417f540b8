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

// hertz is the unit of the kernel's processor times, the same on every architecture that programs are told of.
const hertz = 100

// work is what processors and processes have done since they started.
type work struct {
	at           time.Time
	busy, stolen uint64
	processes    map[int]process
}

// process is what /proc/PID/stat says of one.
type process struct {
	name   string
	parent int
	start  uint64
	ticks  uint64
	reaped uint64 // of its children that have ended
}

// work reads what was done until now.
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

// parseStat reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
func parseStat(text string) (busy, stolen uint64) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, 0
	}
	number := func(i int) uint64 {
		if i >= len(fields) {
			return 0 // steal is younger than the rest
		}
		n, _ := strconv.ParseUint(fields[i], 10, 60) // what is no number has done nothing
		return n
	}
	return number(1) + number(2) + number(3) + number(6) + number(7), number(8)
}

// parseProcess reads a process's line: its name is in brackets and may have any character.
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
	if parent == 2 { // the kernel's own, by what they are for and not where
		name, _, _ = strings.Cut(strings.ReplaceAll(name, ":", "/"), "/")
	}
	return process{name: name, parent: parent, start: start, ticks: user + system, reaped: childUser + childSystem},
		pid, true
}

// ours tells whether a process is the one of this number, or was started by it or what it started.
func (w work) ours(pid, self int) bool {
	for range 64 { // deeper than anybody starts, and an end where numbers go round
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

// own is what a process of ours has done, and all that it started: who has ended counts with who has waited for it.
func (w work) own(self int) (ticks uint64) {
	for pid, p := range w.processes {
		if w.ours(pid, self) {
			ticks += p.ticks + p.reaped
		}
	}
	return ticks
}

// heardMost is how many of the busiest programs are named.
const heardMost = 5

// since says what others than a process of ours have done since an earlier moment; nil where nothing tells.
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
	b := &record.Background{Seconds: round(seconds), Cores: cores(max(all, seen))} // they are read one behind the other
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

// round keeps three digits behind the point: the kernel's ticks give no more.
func round(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 3, 64), 64)
	return r
}
