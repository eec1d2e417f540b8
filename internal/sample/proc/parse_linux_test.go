package proc

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
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
			if p, _, ok := parseStat([]byte(text[:n])); ok && (p.PID != pid || p.Parent != parent) && !strings.Contains(name, ")") {
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
		"0: 0100007F 0:0 0A 0 0 0 0 0 1 1", "0: 01007F:1 01007F:1 0A 0 0 0 0 0 1 1", "0: 0100007F:10000 0100007F:1 0A 0 0 0 0 0 1 1"} {
		if got, ok := parseSocket(row); ok {
			t.Errorf("%q is taken for %+v", row, got)
		}
	}
}
