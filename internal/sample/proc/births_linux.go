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

// births tells which processes may be new since it was last asked.
//
// The kernel gives out pids one after the other and tells the last one: one small read says whether anything was
// started at all on the machine, and what was is between that number and the one before. Everybody is looked at only
// now and then: for what was missed, and because a process may be given another parent or another program.
type births struct {
	file   *os.File // tells the last pid; nil: nothing does
	last   int      // pid
	buf    [128]byte
	rest   time.Time         // until when not everybody is looked at
	pause  time.Time         // until when nobody is
	absent map[int]time.Time // pids that nobody had, and since when
	again  map[int]time.Time // those of them that are being looked at
}

// birth is longer than a process is under way between being given its pid and being seen, and underWay more than can be
// at once.
const (
	birth    = 100 * time.Millisecond
	underWay = 32
)

// tooMany pids between two looks are more expensive to look at than everybody.
const tooMany = 1000

// So many pids between two looks are looked at at once; of more, each is paid for with a pause. Where a machine starts
// one program after the other, most are gone by then, and the others are found a little later.
const (
	atOnce   = 100
	pauseFor = 500 * time.Microsecond // about fifty times what a look at one takes
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
		_ = b.file.Close() // it was only read
		b.file = nil
	}
}

// isProc tells whether a file is the kernel's own: containers put files of their own makers over some of /proc.
func isProc(f *os.File) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}

// read gives the pid that was given out last, the last number of either file; 0 where that is not told.
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

// next gives the pids that may be new, in the order in which they were given out, or everybody's. Not every one of them
// is a process: there are threads, and such as have ended.
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
		pids, _ = All() // what was listed until an error is what can be known
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

// missed says that nobody had a pid: a number is given out a moment before its process can be seen. It is given again
// for a while, at least once.
func (b *births) missed(pid int, at time.Time) {
	since, again := b.again[pid]
	if !again {
		since = at
	}
	if (!again || at.Sub(since) < birth) && pid > b.last-tooMany {
		b.absent[pid] = since
	}
}

// scanned says what a look at everybody took. There is to be one that often, and more rarely where it would take over
// one part in share of a core.
func (b *births) scanned(took, every time.Duration, share int) {
	if b.file == nil {
		every, share = 0, 100 // nothing else finds anybody
	}
	b.rest = time.Now().Add(max(every, took*time.Duration(share)))
}
