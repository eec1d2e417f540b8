package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"llmparity/internal/depth"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
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
	p.Wall = map[string]time.Duration{"decode": 10 * time.Millisecond}
	if said := ofClock(p); !strings.HasSuffix(said, " 60.0% of decode") {
		t.Error(said)
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

// A forward pass ends where the engine reads a result, and has its own layers.
func TestPassesHaveLayers(t *testing.T) {
	k := kernelTimes{Kernels: strings.Fields("embed norm mul_mat attend logits"), Answers: []float64{1, 2, 9, 10}}
	for _, kernel := range []float64{0, 4, 1, 3, 2, 1, 3, 2, 4, 4, 0} { // two passes, and the begin of a third
		k.Dispatches = append(k.Dispatches, dispatched{kernel})
	}
	places := k.places()
	want := []int{-1, -1, 0, 0, 0, 1, 1, 1, -1, -1, -1}
	for i, layer := range want {
		if i >= len(places) || places[i].Layer != layer {
			t.Fatalf("%v, want layers %v", places, want)
		}
	}
	if note := layersNote(places); !strings.Contains(note, "2 repeats") {
		t.Error(note)
	}
	if n := k.results(func(ms float64) bool { return ms <= 5 }); n != 1 {
		t.Errorf("%d results", n)
	}
}

// halves is a layout that knows weights by their stage.
type halves struct{}

func (halves) Parts(groups []LedgerGroup, _ int64) (out []record.Value) {
	for _, g := range groups {
		out = append(out, record.Value{Name: g.Stage + "_bytes", Value: float64(g.Bytes * g.Count)},
			record.Value{Name: g.Stage + "_count", Value: float64(g.Count)})
	}
	return out
}

func (halves) Used(int64) (int64, bool) { return 0, false }

// Buffers grow by kind in a file, and as one kind for an engine that tells nothing.
func TestBuffersOverTime(t *testing.T) {
	k := kernelTimes{Held: []held{{100, []LedgerGroup{{"weights", "buffer", 0, 8, 2}}},
		{150.5, []LedgerGroup{{"weights", "buffer", 0, 8, 2}, {"cache", "buffer", 0, 4, 1}}}}}
	for want, l := range map[string]*ledger{
		"ms,kind,bytes\n0.0,weights,16\n50.5,weights,16\n50.5,cache,4\n": {layout: halves{}},
		"ms,kind,bytes\n0.0,all,16\n50.5,all,20\n":                       {},
	} {
		var p depth.Profile
		path := filepath.Join(t.TempDir(), "buffers.csv")
		check.Err(t, k.writeHeld(&p, l, path))
		got, err := os.ReadFile(path)
		check.Err(t, err)
		if string(got) != want || len(p.Files) != 1 {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What a kernel reaches is told as a share of a plain copy on the same adapter.
func TestShareOfBandwidth(t *testing.T) {
	p := depth.Profile{Rows: []depth.Row{
		{Phase: record.Decode, Layer: 0, Role: depth.FeedForward, Kernel: "down", Self: 8, Bytes: 16},
		{Phase: record.Decode, Layer: 1, Role: depth.FeedForward, Kernel: "down", Self: 8, Bytes: 16}}}
	(&reach{Bytes: 400, CopyNS: 100, Flop: 800, MultiplyNS: 10}).into(&p) // 4 bytes and 80 operations per ns
	said := strings.Join(p.Notes, "\n")
	for _, want := range []string{"80 GFLOP/s", "fewer than 20 FLOP per byte", "down (feed-forward) 1907 MiB/s, 50%"} {
		if !strings.Contains(said, want) {
			t.Errorf("%s lacks %q", said, want)
		}
	}
	if rows := p.Rows[2:]; len(rows) != 2 || rows[0].Phase != depth.Adapter || rows[0].Bytes != 400 {
		t.Errorf("rows %+v", rows)
	}
}
