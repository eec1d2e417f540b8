package reports

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestThinKeepsPeaksAndOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 3, 60, 61, 400, 20000} {
		points := make([]xy, n)
		x := 0.0
		for i := range points {
			if i%7 != 0 {
				x += r.ExpFloat64() // some points share an x
			}
			points[i] = xy{x, 100 * r.Float64()}
		}
		peak := points[r.IntN(n)]
		for i := range points {
			if points[i] == peak {
				points[i].y = 1e6
			}
		}
		got := thin(points, 60)
		if len(got) > 64 || n <= 60 && len(got) != n || got[0] != points[0] || got[len(got)-1] != points[n-1] {
			t.Errorf("%d points became %d", n, len(got))
		}
		highest, last := 0.0, math.Inf(-1)
		for _, p := range got {
			highest = max(highest, p.y)
			if p.x < last {
				t.Errorf("%d points: x goes back from %v to %v", n, last, p.x)
			}
			last = p.x
		}
		if highest != 1e6 {
			t.Errorf("%d points: the peak is gone, the highest is %v", n, highest)
		}
	}
	same := []xy{{1, 5}, {1, 9}, {1, 2}, {1, 3}, {1, 4}, {1, 4}}
	if got := thin(same, 4); len(got) != 2 || got[0].y != 2 || got[1].y != 9 {
		t.Errorf("points at one time: %v", got)
	}
}

func TestCleanSpellsOutWhatATerminalWouldObey(t *testing.T) {
	for in, want := range map[string]string{"plain, ünïcode שלום": "plain, ünïcode שלום", "a\x1b[2Jb": `a\x1b[2Jb`, "\u202eabc": `\u202eabc`, "a\nb": "a\nb",
		"bad\xffbyte": `bad\xffbyte`, "kept \ufffd": "kept \ufffd", "c1 \u009b": `c1 \x9b`, "tab\t": `tab\x09`} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNum(t *testing.T) {
	for in, want := range map[float64]string{0: "0", 64: "64", 4239.6: "4240", 820.43: "820.4", 99.96: "100.0", 46.594: "46.59", 8.7469: "8.747", 0.02345: "0.023", 0.00012345: "0.000123", -3.25: "-3.250"} {
		if got := num(in); got != want {
			t.Errorf("num(%v) = %q, want %q", in, got, want)
		}
	}
}
