package proc

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"llmparity/internal/record"
)

// A name may hold whatever else stands in the line.
func FuzzStat(f *testing.F) {
	for _, name := range []string{"sleep", "a) b) ", ") S 1 (", "", "\n0 (x", "日本"} {
		f.Add(17, name, 1, uint64(4711), false)
	}
	f.Add(1<<22, "x", 0, uint64(1)<<63, true)
	f.Fuzz(func(t *testing.T, pid int, name string, parent int, start uint64, thread bool) {
		signal := 17
		if thread {
			signal = -1
		}
		text := fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 %d 3 0\n",
			pid, name, parent, start, signal)
		want := Process{PID: pid, Parent: parent, Start: start, Name: name, thread: thread}
		if p, state, ok := parseStat([]byte(text)); !ok || state != 'S' || p != want {
			t.Errorf("%q: %+v %c %v, want %+v", text, p, state, ok, want)
		}
		for n := range text { // cut off anywhere it is refused, or has what it should
			if p, _, ok := parseStat([]byte(text[:n])); ok && (p.PID != pid || p.Parent != parent) &&
				!strings.Contains(name, ")") {
				t.Errorf("%q: %+v", text[:n], p)
			}
		}
	})
}

func TestStat(t *testing.T) {
	p, state, ok := parseStat([]byte("17 (a) b) ) S 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2\n"))
	if !ok || state != 'S' || p != (Process{PID: 17, Parent: 1, Start: 4711, Name: "a) b) "}) {
		t.Errorf("%+v %c %v", p, state, ok)
	}
}

func TestSocketRow(t *testing.T) {
	for row, want := range map[string]socket{
		"   0: 0100007F:2CA3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22334 1 0000000000000000 100 0 0 10 0": {
			netip.MustParseAddrPort("127.0.0.1:11427"), netip.MustParseAddrPort("0.0.0.0:0"), isListening, "22334"},
		"   1: 00000000000000000000000001000000:1F90 00000000000000000000000001000000:C350 01 0:0 0:0 0 0 0 7 1": {
			netip.MustParseAddrPort("[::1]:8080"), netip.MustParseAddrPort("[::1]:50000"), established, "7"},
		"   2: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:C350 01 0:0 0:0 0 0 0 7 1": {
			netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("127.0.0.1:50000"), established, "7"},
	} {
		if got, ok := parseSocket(row); !ok || got != want {
			t.Errorf("%s: %+v, %v; want %+v", row, got, ok, want)
		}
	}
	for _, row := range []string{"", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
		"0: 0100007F 0:0 0A 0 0 0 0 0 1 1", "0: 01007F:1 01007F:1 0A 0 0 0 0 0 1 1",
		"0: 0100007F:10000 0100007F:1 0A 0 0 0 0 0 1 1"} {
		if got, ok := parseSocket(row); ok {
			t.Errorf("%q parsed as %+v", row, got)
		}
	}
}

// forked is what Linux 6.18 says of a process that was forked and shares anonymous pages with its parent.
const forked = `55a9d2888000-7ffd7f2ef000 ---p 00000000 00:00 0                          [rollup]
Rss:               20832 kB
Pss:               11470 kB
Pss_Dirty:         10016 kB
Pss_Anon:          10016 kB
Pss_File:           1454 kB
Pss_Shmem:             0 kB
Shared_Clean:       3700 kB
Shared_Dirty:      14208 kB
Private_Clean:        12 kB
Private_Dirty:      2912 kB
Referenced:         7036 kB
Anonymous:         17120 kB
KSM:                   0 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                0 kB
`

// without removes the lines that begin with a name.
func without(text, name string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, name) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func TestRollup(t *testing.T) {
	const kib = 1 << 10
	whole := sizes{rss: 20832 * kib, pss: 11470 * kib, unique: 2924 * kib, anonymous: 17120 * kib,
		pssAnonymous: 10016 * kib,
		kinds:        record.Kinds{Anonymous: 10016 * kib, Files: 1454 * kib}}
	old, noSwap := whole, whole
	old.pssAnonymous = old.anonymous // nothing is known to be shared
	old.kinds = record.Kinds{Anonymous: record.Absent}
	noSwap.swap = record.Absent
	for name, c := range map[string]struct {
		text string
		want sizes
	}{
		"a forked process":      {forked, whole},
		"a kernel before 5.9":   {without(forked, "Pss_"), old},
		"a kernel without swap": {without(forked, "Swap"), noSwap},
	} {
		if got, err := parseRollup([]byte(c.text)); err != nil || got != c.want {
			t.Errorf("%s: %+v %v, want %+v", name, got, err, c.want)
		}
	}
	for _, name := range []string{"Rss:", "Pss:", "Private_Clean:", "Private_Dirty:"} {
		if got, err := parseRollup([]byte(without(forked, name))); err == nil {
			t.Errorf("without %s it is taken for %+v", name, got)
		}
	}
}

func FuzzRollup(f *testing.F) {
	f.Add(forked, uint32(20832), uint32(11470), uint32(12), uint32(2912))
	f.Add("", uint32(0), uint32(0), uint32(0), uint32(0))
	f.Add("Rss:\nPss: x kB\nPrivate_Clean:   \nPrivate_Dirty: 99999999999999999999 kB", uint32(1), uint32(1<<31),
		uint32(3), uint32(4))
	f.Fuzz(func(t *testing.T, before string, rss, pss, clean, dirty uint32) {
		_, _ = parseRollup([]byte(before)) // whatever it is, it ends
		text := fmt.Sprintf("55a9-7ffd ---p 0 00:00 0 [rollup]\nRss: %d kB\nPss: %d kB\nPss_Anon: 0 kB\nPrivate_Clean: %d kB\n"+
			"Private_Dirty: %d kB\nAnonymous: 0 kB\nSwap: 0 kB\n", rss, pss, clean, dirty)
		want := sizes{rss: int64(rss) << 10, pss: int64(pss) << 10, unique: (int64(clean) + int64(dirty)) << 10,
			kinds: record.Kinds{Anonymous: record.Absent}}
		if got, err := parseRollup([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", text, got, err, want)
		}
		for n := range strings.Index(text, "Private_Dirty: ") + len("Private_Dirty: ") {
			if got, err := parseRollup([]byte(text[:n])); err == nil {
				t.Errorf("%q is taken for %+v", text[:n], got)
			}
		}
	})
}
