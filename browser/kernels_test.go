package browser

import (
	"testing"
	"time"

	"llmparity/internal/depth"
)

// Kernels that overlap count once, waits lie between them and at the edges, and both add up to the phase.
func TestKernelTimesAddUp(t *testing.T) {
	k := kernelTimes{Kernels: []string{"qkv", "ffn"}, Dispatches: []dispatched{
		{0, 1, 64, 0, 2e6}, {1, 1, 32, 1e6, 3e6}, {1, 5, 32, 5e6, 6e6}, {0, 9, 64, -1, -1}}}
	start := time.Unix(100, 0)
	on := func(ns float64) time.Time { return start.Add(time.Millisecond + time.Duration(ns)) }
	var p depth.Profile
	k.into(&p, edge{"decode", start, start.Add(10 * time.Millisecond)}, k.places(), on)
	got := map[string]time.Duration{}
	for _, r := range p.Rows {
		got[r.Kernel] = r.Self
	}
	for kernel, want := range map[string]time.Duration{"before the first kernel": 1, "qkv": 2, "ffn": 2,
		"between kernels": 2, "after the last kernel": 3} {
		if got[kernel] != want*time.Millisecond {
			t.Errorf("%s: %v, want %d ms", kernel, got[kernel], want)
		}
	}
	if p.Sum("decode") != 10*time.Millisecond {
		t.Errorf("the sum is %v", p.Sum("decode"))
	}
}

// A kernel begins after it is recorded and ends before a later answer, which bounds the clocks' difference.
func TestClocksOfPageAndGPU(t *testing.T) {
	k := kernelTimes{Dispatches: []dispatched{{0, 1000, 0, 0, 2e6}, {0, 1004, 0, 3e6, 5e6}},
		Answers: []float64{1003.5, 1, 1007, 2}}
	offset, within := k.offset()
	if offset != 1001.25 || within != 0.25 { // from 1001 by the second kernel to 1001.5 by the first answer
		t.Errorf("%g ± %g", offset, within)
	}
}
