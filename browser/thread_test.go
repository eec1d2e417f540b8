package browser

import (
	"fmt"
	"slices"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// A worker has its own clock, heap, ledger and WebGPU; what is counted and said there is what it is on the page.
func TestTheWorkerIsMeasuredWhereItIs(t *testing.T) {
	c, m := tinyModel(t)
	c.Thread = WorkerThread
	s, probe := fresh(t, c)
	if err := s.Load(watched(t), m); err != nil {
		t.Fatal(err)
	}
	ids := func(s *session) (ids []int) {
		r := engine.Request{Prompt: "the quick brown fox", MaxTokens: 64, IgnoreEOS: true}
		if _, err := s.Generate(watched(t), r, func(tok record.Token) { ids = append(ids, tok.ID) }); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if here, page := ids(s), ids(loaded(t)); len(here) != 64 || !slices.Equal(here, page) {
		t.Errorf("in the worker %v, on the page %v", here, page)
	}
	checkParts(t, s, probe, files.pack, window)
	for _, method := range []string{MethodHeap, MethodWasm} {
		if len(figures(t, probe, method, "worker")) == 0 {
			t.Errorf("the worker is not read by %s", method)
		}
	}
	for _, method := range []string{MethodHeap, MethodPerformance, MethodUserAgent} {
		if len(figures(t, probe, method, "page")) == 0 {
			t.Errorf("the page is not read by %s", method)
		}
	}
	if err := s.Unload(watched(t)); err != nil {
		t.Fatal(err)
	}
	if got := figures(t, probe, MethodLedger, "worker"); got["live_bytes"] != 0 || got["live_count"] != 0 {
		t.Errorf("after Unload the ledger has %.0f bytes in %.0f objects", got["live_bytes"], got["live_count"])
	}
	var clocks []string
	for _, e := range probe.Events() {
		if e.Clock != nil {
			clocks = append(clocks, e.Clock.Isolate+" "+e.Clock.When)
		}
	}
	if want := []string{"worker start", "worker end"}; !slices.Equal(clocks, want) {
		t.Errorf("clocks %v, want %v", clocks, want)
	}
	if thread := probe.Engine().Policy["thread"]; thread != "worker" {
		t.Errorf("the record says that the thread was %q", thread)
	}
	for _, w := range probe.Warnings() {
		t.Errorf("warning: %s: %s", w.Code, w.Text)
	}
}

// What WebLLM holds after an unload must not grow with the number of loads. Garbage has been collected then, so that a
// heap can be held to a few tens of KiB; processes keep caches and have some noise.
func TestLoadsAndUnloadsRetainNothingMore(t *testing.T) {
	c, m := tinyModel(t)
	c.Adapter = SwiftShader
	s, probe := fresh(t, c) // where loads have failed, their libraries' memory may be left
	warned := len(probe.Warnings())
	r := engine.Request{Prompt: "the quick brown fox", MaxTokens: 4, IgnoreEOS: true}
	var ids []int
	var first, last map[string]float64
	const loads = 3
	for i := range loads {
		if err := s.Load(watched(t), m); err != nil {
			t.Fatal(err)
		}
		var said []int
		if _, err := s.Generate(watched(t), r, func(tok record.Token) { said = append(said, tok.ID) }); err != nil {
			t.Fatal(err)
		}
		if ids == nil {
			ids = said
		}
		if len(said) != 4 || !slices.Equal(said, ids) {
			t.Errorf("load %d: ids %v, and %v at first", i+1, said, ids)
		}
		if err := s.Unload(watched(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Generate(watched(t), r, func(record.Token) {}); err == nil {
			t.Error("Generate after Unload gives no error")
		}
		last = map[string]float64{
			"ledger":      figures(t, probe, MethodLedger, "page")["live_bytes"],
			"wasm":        figures(t, probe, MethodWasm, "page")["memory_bytes"],
			"heap":        figures(t, probe, MethodHeap, "page")["used_bytes"],
			"arrays":      figures(t, probe, MethodHeap, "page")["backing_storage_bytes"],
			"renderer":    float64(private(t, probe, "renderer")),
			"gpu-process": float64(private(t, probe, "gpu-process")),
		}
		t.Log(fmt.Sprint(last))
		if i == 0 {
			first = last // code is compiled, caches are filled
		}
	}
	for what, most := range map[string]float64{"ledger": 0, "wasm": 0, "heap": 128 << 10, "arrays": 64 << 10,
		"renderer": 3 << 20, "gpu-process": 2 << 20} {
		if slope := (last[what] - first[what]) / (loads - 1); slope > most {
			t.Errorf("%s: %.0f bytes more are retained after every load, want %.0f at most", what, slope, most)
		}
	}
	if last["ledger"] != 0 {
		t.Errorf("%.0f bytes of WebGPU buffers are left", last["ledger"])
	}
	// WebLLM keeps its tokenizer's memory for good, and nothing else of a library's.
	if got := figures(t, probe, MethodWasm, "page")["memory_count"]; got != 1 {
		t.Errorf("%.0f WebAssembly memories are left, want the tokenizer's alone", got)
	}
	for _, w := range probe.Warnings()[warned:] {
		t.Errorf("warning: %s: %s", w.Code, w.Text)
	}
}
