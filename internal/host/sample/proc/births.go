package proc

import (
	"slices"
	"time"

	"github.com/shirou/gopsutil/v3/process"
)

// births finds processes that may be new since the last call: those that were not listed then. If the kernel reports
// the last pid that it assigned, it lists processes only after that has changed.
type births struct {
	known   map[int]bool
	last    int       // pid
	changed time.Time // when last changed
	rest    time.Time // no check of all processes until then
}

// birth is longer than a process takes from getting its pid to being visible.
const birth = 100 * time.Millisecond

// All returns all pids.
func All() ([]int, error) {
	found, err := process.Pids()
	pids := make([]int, len(found))
	for i, pid := range found {
		pids[i] = int(pid)
	}
	return pids, err
}

// next returns the pids that may be new, or all pids.
func (b *births) next(everybody bool) (pids []int, all bool) {
	now := time.Now()
	if pid := lastPID(); pid != b.last || pid == 0 {
		b.last, b.changed = pid, now
	}
	everybody = everybody || now.After(b.rest)
	if !everybody && now.Sub(b.changed) > birth {
		return nil, false
	}
	listed, err := All()
	if err != nil {
		return nil, false
	}
	known := make(map[int]bool, len(listed))
	for _, pid := range listed {
		known[pid] = true
	}
	was := b.known
	if b.known = known; everybody {
		return listed, true
	}
	return slices.DeleteFunc(listed, func(pid int) bool { return was[pid] }), false
}
