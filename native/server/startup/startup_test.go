package startup_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/native/server/startup"
)

// read reads a log in pieces of a size.
func read(text string, size int) startup.Said {
	l := startup.New()
	for len(text) > size {
		_, _ = l.Write([]byte(text[:size])) // it never fails
		text = text[size:]
	}
	_, _ = l.Write([]byte(text + "\n"))
	return l.Said()
}

const gib = 1 << 30

// Excerpts of vllm-cpu.log are from vLLM 0.32.0 on a CPU; the other formats follow the sources of the versions in their
// names.
func TestSaid(t *testing.T) {
	for name, want := range map[string]startup.Said{
		"vllm-0.32-cpu": {Version: "0.32.0", Tokens: 11648, Loading: 890 * time.Millisecond,
			Starting: 770 * time.Millisecond},
		"vllm-0.11": {Version: "0.11.0", Weights: 2 * 12.5 * gib, Graphs: 2 * 0.5 * gib, Tokens: 49152,
			Loading:  4250 * time.Millisecond,
			Starting: 28440 * time.Millisecond},
		"vllm-0.6": {Version: "0.6.3", Weights: 15 * gib, Blocks: 27893, Starting: 28 * time.Second},
		"sglang":   {Weights: 2 * 15.5 * gib, KV: 4 * 27.25 * gib, Graphs: 2 * 1.5 * gib, Tokens: 442750},
	} {
		text, err := os.ReadFile("testdata/" + name + ".log")
		check.Err(t, err)
		for _, size := range []int{1, 7, 1 << 20} {
			if got := read(string(text), size); got != want {
				t.Errorf("%s in pieces of %d: %+v, want %+v", name, size, got, want)
			}
		}
	}
}

// What a log does not say is not recorded as zero.
func TestValues(t *testing.T) {
	if v := (startup.Said{}).Values(); len(v) != 0 {
		t.Errorf("an empty log has %v", v)
	}
	v := startup.Said{Weights: 1, Tokens: 2}.Values()
	if len(v) != 2 || v["weights_bytes"] != 1 || v["kv_cells_count"] != 2 {
		t.Errorf("%v", v)
	}
}

func FuzzLog(f *testing.F) {
	for _, name := range []string{"vllm-0.32-cpu", "vllm-0.11", "vllm-0.6", "sglang"} {
		text, err := os.ReadFile("testdata/" + name + ".log")
		check.Err(f, err)
		for line := range strings.Lines(string(text)) {
			f.Add(line)
		}
	}
	f.Add("Model loading took 99999999999999999999999999999999999999 GiB")
	f.Add("KV Cache is allocated. #tokens: 99999999999999999999,9, K size: 1.0 GB, V size: 1.0 GB")
	f.Fuzz(func(t *testing.T, text string) {
		s := read(text, 5)
		for _, n := range []float64{s.Weights, s.KV, s.Graphs, float64(s.Tokens), float64(s.Blocks), float64(s.Loading),
			float64(s.Starting)} {
			if n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
				t.Errorf("%q gives %+v", text, s)
			}
		}
		if len(s.Version) > 64 {
			t.Errorf("a version of %d bytes", len(s.Version))
		}
	})
}
