package proc

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// births finds processes that may be new since the last call.
//
// The kernel assigns pids in sequence and reports the last one. So one small read tells whether any process was started
// on the machine, and which pids to check. All processes are checked only now and then, for missed ones, and because a
// process can get another parent or program.
type births struct {
	file   *os.File // has the last pid; nil: not available
	last   int      // pid
	buf    [128]byte
	rest   time.Time         // no check of all processes until then
	pause  time.Time         // no check at all until then
	absent map[int]time.Time // pids without a process, and since when
	again  map[int]time.Time // those that are being checked
}

// birth is longer than a process takes from getting its pid to being visible, and underWay more than can do so at once.
const (
	birth    = 100 * time.Millisecond
	underWay = 32
)

// tooMany pids are more expensive to check than all processes.
const tooMany = 1000

// Up to atOnce new pids are checked without a pause. If a machine starts programs faster, each costs a pause: most are
// gone afterwards, and the others are found a little later.
const (
	atOnce   = 100
	pauseFor = 500 * time.Microsecond // about fifty times the cost of checking one
)

func newBirths() *births {
	b := &births{absent: map[int]time.Time{}}
	for _, path := range []string{"/proc/sys/kernel/ns_last_pid", "/proc/loadavg"} {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		b.file = f
		if isProc(f) && b.read() > 0 {
			return b
		}
		b.close()
	}
	return b
}

func (b *births) close() {
	if b.file != nil {
		_ = b.file.Close() // read-only
		b.file = nil
	}
}

// isProc reports whether a file is the kernel's own: container runtimes mount other files over parts of /proc.
func isProc(f *os.File) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}

// read returns the last pid, which is the last number in either file; 0 if unknown.
func (b *births) read() int {
	n, err := b.file.ReadAt(b.buf[:], 0)
	if n == 0 && err != nil {
		return 0
	}
	text := bytes.TrimSpace(b.buf[:n])
	last, err := strconv.Atoi(string(text[bytes.LastIndexByte(text, ' ')+1:]))
	if err != nil {
		return 0
	}
	return last
}

// next returns the pids that may be new, in order of creation, or all pids. They may be threads, or have ended.
func (b *births) next(everybody bool) (pids []int, all bool) {
	at := time.Now()
	if !everybody && at.Before(b.pause) {
		return nil, false
	}
	now, before := 0, b.last
	if b.file != nil {
		now = b.read()
	}
	b.last, b.again, b.absent = now, b.absent, map[int]time.Time{}
	switch {
	case everybody, !at.Before(b.rest), now != 0 && (now < before || now-before > tooMany):
		pids, _ = All() // on an error, those listed so far
		for pid := max(1, now-underWay); pid <= now; pid++ {
			if !slices.Contains(pids, pid) {
				b.missed(pid, at)
			}
		}
		return pids, true
	case now == 0 || before == 0:
		return nil, false
	}
	pids = slices.Sorted(maps.Keys(b.again))
	for pid := before + 1; pid <= now; pid++ {
		pids = append(pids, pid)
	}
	if n := len(pids); n > atOnce {
		b.pause = at.Add(time.Duration(n) * pauseFor)
	}
	return pids, false
}

// missed says that a pid had no process yet. It is returned again for a while, at least once.
func (b *births) missed(pid int, at time.Time) {
	since, again := b.again[pid]
	if !again {
		since = at
	}
	if (!again || at.Sub(since) < birth) && pid > b.last-tooMany {
		b.absent[pid] = since
	}
}

// scanned takes the duration of a check of all processes. The next follows after every, or later so that checks use at
// most 1/share of a core.
func (b *births) scanned(took, every time.Duration, share int) {
	if b.file == nil {
		every, share = 0, 100 // nothing else finds new processes
	}
	b.rest = time.Now().Add(max(every, took*time.Duration(share)))
}
