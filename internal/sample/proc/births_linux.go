package proc

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// births tells which processes may be new since it was last asked.
//
// The kernel gives out pids one after the other and tells the last one: one small read says whether anything was started at all on the
// machine, and what was is between that number and the one before. Everybody is looked at only now and then: for what was missed,
// and because a process may be given another parent or another program.
type births struct {
	file   *os.File // tells the last pid; nil: nothing does
	last   int      // pid
	before int      // the last pid of the look before
	buf    [128]byte
	rest   time.Time // until when not everybody is looked at
	absent []int     // pids that were given out, and nobody was there yet
}

// scanShare is the part of a core that scans of everybody may take: one in so many.
const scanShare = 1000

// tooMany pids between two looks are dearer to look at than everybody.
const tooMany = 1000

func newBirths() *births {
	b := &births{}
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

// next gives the pids that may be new, in the order in which they were given out, or everybody's. Not every one of them is a
// process: there are threads, and such as have ended.
func (b *births) next(everybody bool) (pids []int, all bool) {
	now, rested := 0, !time.Now().Before(b.rest)
	if b.file != nil {
		now = b.read()
	}
	b.before, b.last = b.last, now
	again := b.absent
	b.absent = nil
	switch {
	case everybody, rested, now != 0 && (now < b.before || now-b.before > tooMany):
		pids, _ = All() // what was listed until an error is what can be known
		return pids, true
	case now == 0 || b.before == 0:
		return nil, false
	}
	for pid := b.before + 1; pid <= now; pid++ {
		again = append(again, pid)
	}
	return again, false
}

// missed says that nobody had a pid yet: a number is given out a moment before its process can be seen. It is given once more.
func (b *births) missed(pid int) {
	if pid > b.before {
		b.absent = append(b.absent, pid)
	}
}

// scanned says what a look at everybody took, and how often there is to be one.
func (b *births) scanned(took, every time.Duration) {
	rest := max(every, took*scanShare)
	if b.file == nil {
		rest = took * 100 // nothing else finds anybody
	}
	b.rest = time.Now().Add(rest)
}
