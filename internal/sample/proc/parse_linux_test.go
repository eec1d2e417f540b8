package proc

import "testing"

func FuzzStat(f *testing.F) {
	f.Add([]byte("17 (a) b) ) S 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2\n"))
	f.Add([]byte("17 ( "))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, _, ok := parseStat(text); ok && p.Name == "a) b) " && p.Parent == 1 && p.PID == 17 && p.Start != 4711 {
			t.Errorf("%+v", p)
		}
	})
}

func TestStat(t *testing.T) {
	p, state, ok := parseStat([]byte("17 (a) b) ) S 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2\n"))
	if !ok || state != 'S' || p != (Process{PID: 17, Parent: 1, Start: 4711, Name: "a) b) "}) {
		t.Errorf("%+v %c %v", p, state, ok)
	}
}

func TestListenerRow(t *testing.T) {
	const row = "   0: 0100007F:2CA3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22334 1 0000000000000000 100 0 0 10 0"
	if inode, ok := listener(row, 0x2CA3); !ok || inode != "22334" {
		t.Errorf("inode %q, %v", inode, ok)
	}
	if _, ok := listener(row, 0x2CA4); ok {
		t.Error("another port's")
	}
}
