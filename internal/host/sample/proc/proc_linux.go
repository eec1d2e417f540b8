package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// CheapMethod is the method of the cheap source.
const CheapMethod = record.MethodStatm

// Sources returns the sources of a process. role is what the process is to its engine: renderer, server …
//
// If it is ours, because we started it, the highest RSS is reset at every phase edge, which would disturb other readers
// of that figure. Otherwise it is that since the start.
func Sources(pid int, role string, ours bool) ([]sample.Source, error) {
	now, err := Look(pid)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(of(pid, "statm"))
	if err != nil {
		return nil, gone(pid, err)
	}
	cheap := &statm{file: file, page: int64(os.Getpagesize()), Source: record.Source{Role: role, PID: pid,
		Start: now.Start, Method: record.MethodStatm, Every: FastEvery, Kernel: true,
		Sees:  "RSS and VMS of the process; shared pages count in full",
		Blind: "sharing between processes; GPU memory; peaks between two reads; up to 64 pages for each thread"}}
	since := "since the process started"
	if ours {
		since = "since the last phase edge"
	}
	expensive := &rollup{record.Source{Role: role, PID: pid, Start: now.Start, Method: record.MethodSmapsRollup,
		Every: ExpensiveEvery, Kernel: true,
		Sees: "PSS (shared pages divided among their users), USS (private pages), swap, and highest RSS " + since +
			"; components of PSS (anonymous, shared, files) at phase edges and at the highest moment of a phase",
		Blind: "GPU memory; changes between two reads, except for the highest RSS"}}
	if ours {
		return []sample.Source{cheap, &peaking{rollup: expensive}}, nil
	}
	return []sample.Source{cheap, expensive}, nil
}

func of(pid int, file string) string { return fmt.Sprintf("/proc/%d/%s", pid, file) }

// gone recognises errors of a process that has ended.
func gone(pid int, err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d: %w", pid, sample.ErrGone)
	}
	return fmt.Errorf("process %d: %w", pid, err)
}

// statm keeps its descriptor open, which stays bound to the process even if the pid is reused.
type statm struct {
	record.Source
	file *os.File
	page int64
	buf  [128]byte
}

func (s *statm) Read(_ context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	n, err := s.file.ReadAt(s.buf[:], 0)
	r.End = time.Now()
	if n == 0 {
		return gone(s.PID, err)
	}
	vms, rest := number(s.buf[:n])
	rss, rest := number(rest)
	shared, _ := number(rest)
	if vms == 0 {
		return fmt.Errorf("process %d: %w", s.PID, sample.ErrGone) // a zombie has no memory
	}
	r.VMS, r.RSS, r.Shared = vms*s.page, rss*s.page, shared*s.page
	return nil
}

// Close closes the descriptor.
func (s *statm) Close() error { return s.file.Close() }

// number reads a decimal number without allocating, and returns the rest after the separator.
func number(b []byte) (int64, []byte) {
	var n int64
	for i, c := range b {
		if c < '0' || c > '9' {
			return n, b[i+1:]
		}
		n = n*10 + int64(c-'0')
	}
	return n, nil
}

type rollup struct{ record.Source }

func (s *rollup) Read(_ context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	now, err := Look(s.PID)
	if err != nil {
		return err
	}
	if now.Start != s.Start {
		return fmt.Errorf("process %d: pid reused: %w", s.PID, sample.ErrGone)
	}
	text, err := os.ReadFile(of(s.PID, "smaps_rollup"))
	if err != nil {
		return gone(s.PID, err)
	}
	if err := parseRollup(text, r); err != nil {
		return fmt.Errorf("process %d: smaps_rollup: %w", s.PID, err)
	}
	if text, err = os.ReadFile(of(s.PID, "status")); err != nil {
		return gone(s.PID, err)
	}
	r.End = time.Now()
	r.HWM, r.VMS = kilobytes(text, "VmHWM:"), kilobytes(text, "VmSize:")
	return nil
}

// parseRollup reads smaps_rollup. Before Linux 5.9 it has no sharing of anonymous pages.
func parseRollup(text []byte, r *record.Sample) error {
	clean, dirty := kilobytes(text, "Private_Clean:"), kilobytes(text, "Private_Dirty:")
	r.RSS, r.PSS, r.Swap = kilobytes(text, "Rss:"), kilobytes(text, "Pss:"), kilobytes(text, "Swap:")
	r.USS, r.Forked = clean+dirty, 0
	if r.RSS == record.Absent || r.PSS == record.Absent || clean == record.Absent || dirty == record.Absent {
		return errors.New("no Rss, Pss, Private_Clean or Private_Dirty")
	}
	kinds := record.Kinds{Anonymous: kilobytes(text, "Pss_Anon:"), Shared: kilobytes(text, "Pss_Shmem:"),
		Files: kilobytes(text, "Pss_File:")}
	if kinds.Shared != record.Absent && kinds.Files != record.Absent {
		r.Kinds = kinds
	}
	if kinds.Anonymous != record.Absent {
		r.Forked = kilobytes(text, "Anonymous:") - kinds.Anonymous
	}
	return nil
}

// kilobytes returns the value of a line such as "Rss:   12 kB" in bytes; record.Absent if there is none.
func kilobytes(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name)); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(value)), " kB"), 10, 53)
			if err != nil {
				return record.Absent
			}
			return n << 10
		}
	}
	return record.Absent
}

// peaking is a rollup of a process whose highest RSS may be reset.
type peaking struct {
	*rollup
	failed bool
}

func (s *peaking) Read(ctx context.Context, r *record.Sample) error {
	err := s.rollup.Read(ctx, r)
	if s.failed {
		r.HWM = record.Absent // perhaps of an earlier phase
	}
	return err
}

// resetPeak is the kernel's command to reset the highest RSS; smaller numbers would clear page bits.
const resetPeak = "5"

// ResetPeak resets the highest RSS. Read has just checked that the pid was not reused.
func (s *peaking) ResetPeak(context.Context) error {
	f, err := os.OpenFile(of(s.PID, "clear_refs"), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(resetPeak)
		_ = f.Close()
	}
	if err != nil {
		err = gone(s.PID, err)
		s.failed = !errors.Is(err, sample.ErrGone)
	}
	return err
}
