package record

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkScan reads what must be known to go on with a run of 100,000 cells of an attempt each, with the lines that
// one of llama.cpp has: most of a gigabyte of journal. It fails where that takes more than a second of a processor,
// which is what it takes of time where nobody else is busy, or more memory than a plan's dry run may have.
func BenchmarkScan(b *testing.B) {
	const cells, second, most = 100_000, time.Second, 300 * MiB
	dir := large(b, cells)
	info, err := os.Stat(filepath.Join(dir, journalFile))
	if err != nil {
		b.Fatal(err)
	}
	var heap runtime.MemStats
	before := spent(b)
	for b.Loop() {
		began := spent(b)
		s, err := Scan(dir)
		if err != nil {
			b.Fatal(err)
		}
		took := spent(b) - began
		runtime.ReadMemStats(&heap)
		if len(s.cells) != cells || s.Attempts != cells {
			b.Fatalf("%d cells, %d attempts", len(s.cells), s.Attempts)
		}
		if took > second || heap.Sys > most {
			b.Errorf("%s and %d MiB, %s and %d MiB are what it may take", took, heap.Sys>>20, second, most>>20)
		}
	}
	b.ReportMetric(float64(info.Size())/MiB, "journal-MiB")
	b.ReportMetric(float64(spent(b)-before)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(heap.Sys)/MiB, "process-MiB")
}

// spent is the processors' time that this program has had.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// large is the folder of a run of many cells.
func large(b *testing.B, cells int) string {
	w := madeIn(b, b.TempDir(), indexEvery)
	w.mu.Lock()
	defer w.mu.Unlock()
	long := string(bytes.Repeat([]byte("what is measured and what can't be seen; "), 8))
	for id := 1; id <= cells; id++ {
		c := Cell{ID: id, Engine: "llamacpp",
			Model:  Model{Name: "tiny-llama-2x128", SHA256: fmt.Sprintf("%064d", 0), Format: "gguf", Context: 1024},
			Prompt: long, MaxTokens: 64, Repetitions: 1, Isolation: OfLaunch, PromptCache: CacheOff}
		w.putLocked(entry{Cell: &c})
		w.putLocked(entry{Prediction: &Prediction{Cell: id, Source: "gguf",
			Parts: []Foretold{{Name: "total", Method: long + long + long + long}}}})
		w.putLocked(entry{Risk: &Risk{Cell: id, Level: RiskLow, Reasons: []string{long}}})
		w.putLocked(entry{Attempt: id, Begin: &beginEntry{Cell: id, Repetition: 1,
			Machine: &MachineState{Load1: 1, Governor: "performance"}}})
		for n := range 3 {
			w.putLocked(entry{Attempt: id,
				Source: &sourceLine{ID: 3*id + n,
					Source: Source{Role: "server", Method: MethodStatm, PID: 1, Sees: long}}})
		}
		for range 2 {
			w.putLocked(entry{Attempt: id,
				Event: &Event{Engine: &EngineInfo{Name: "llamacpp", Version: "b10107", Args: []string{long}}}})
		}
		for _, p := range Phases() {
			w.putLocked(entry{Attempt: id, Phase: &phaseLine{Name: p, Begin: 1, End: 2}})
		}
		for n := range 2 {
			w.putLocked(entry{Attempt: id,
				Request: &requestRow{ID: n + 1, Phase: Measure, PromptIDs: make([]int, 40), Text: long}})
			w.putLocked(entry{Attempt: id, Span: &spanLine{Request: n + 1, Name: Prefill, How: long[:80]}})
			w.putLocked(entry{Attempt: id, Span: &spanLine{Request: n + 1, Name: Decode, How: long[:80]}})
		}
		w.putLocked(entry{Attempt: id, End: &endEntry{Status: OK}})
		w.index(w.indexEvery)
	}
	w.flush() // killed behind that
	w.closeFiles()
	if w.err != nil {
		b.Fatal(w.err)
	}
	return w.dir
}
