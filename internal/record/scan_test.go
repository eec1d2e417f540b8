package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
	"time"

	"llmparity/internal/fault"
)

// drawn is a journal as a Writer writes it, in memory.
type drawn struct {
	text  []byte
	state *State
	ns    int64
}

func (d *drawn) put(t testing.TB, e entry) {
	t.Helper()
	d.ns++
	e.T, e.Time = d.ns, "2026-11-22T08:00:00.000000Z"
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.state.line(&e, int64(len(d.text)), len(line)); err != nil {
		t.Fatal(err)
	}
	d.text = append(append(d.text, line...), '\n')
}

// draw makes a line for each byte; text stands wherever one may.
func draw(t testing.TB, steps []byte, text string) []byte {
	d := &drawn{state: &State{begun: map[int]Commit{}}}
	attempts, cells := 0, 0
	for _, step := range steps {
		n := int(step) / 11
		switch step % 11 {
		case 0:
			cells++
			d.put(t, entry{Cell: &Cell{ID: cells, Prompt: text, Engine: text, Setup: n % 3}})
		case 1:
			attempts++
			d.put(t, entry{Attempt: attempts, Begin: &beginEntry{Cell: n % (cells + 1), Repetition: n, Warmup: n%2 == 0}})
		case 2:
			attempts++
			d.put(t, entry{Attempt: attempts, Begin: &beginEntry{Cell: n, Warmup: true, Scoring: &Scoring{PromptIDs: []int{n}}}})
		case 3:
			if _, ok := d.state.begun[n]; ok {
				d.put(t, entry{Attempt: n, End: &endEntry{Status: []Status{OK, Failed}[n%2], Class: Class(text), Error: text}})
			}
		case 4:
			if _, ok := d.state.begun[attempts]; ok {
				d.put(t, entry{Attempt: attempts, End: &endEntry{Status: OK}})
			}
		case 5:
			d.put(t, entry{Attempt: attempts, Source: &sourceLine{ID: n, Source: Source{Role: text}}})
		case 6:
			d.put(t, []entry{{Attempt: attempts, Warning: &Warning{Code: "a", Text: text}},
				{Attempt: n, Event: &Event{Engine: &EngineInfo{Name: text}}}}[n%2])
		case 7:
			d.put(t, []entry{{Prediction: &Prediction{Cell: n}}, {Risk: &Risk{Cell: n}}, {Stop: &Stop{Cell: n}}}[n%3])
		case 8:
			d.put(t, entry{Resumed: &Resumed{Tool: Tool{Version: text}}})
		case 9:
			d.put(t, entry{Done: &doneEntry{Status: Interrupted}})
		case 10:
			d.put(t, entry{Index: d.state.index(int64(len(d.text)))})
		}
	}
	return d.text
}

// FuzzIndex holds that what indexes say is what the lines say, wherever the journal is cut, and that what is no journal does no harm.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{0, 1, 5, 3, 14, 10, 1, 4, 10, 7, 18, 29, 0, 12, 15, 8, 2, 4, 10, 9}, `x,"index":{"at":0`, uint32(40), uint32(0))
	f.Add([]byte{10, 10, 0, 10}, "\x00\n", uint32(0), uint32(3))
	random := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		steps := make([]byte, 60)
		for i := range steps {
			steps[i] = byte(random.Uint32())
		}
		f.Add(steps, "text", random.Uint32N(2000), random.Uint32())
	}
	f.Fuzz(func(t *testing.T, steps []byte, text string, cut, flip uint32) {
		whole := draw(t, steps[:min(len(steps), 300)], text)
		journal := whole[:len(whole)-min(len(whole), int(cut%uint32(len(whole)+1)))]
		journal = journal[:bytes.LastIndexByte(journal, '\n')+1]
		quick, slow := &State{}, &State{}
		quick.empty()
		slow.empty()
		err := quick.scan(bytes.NewReader(journal), int64(len(journal)))
		if err == nil {
			err = slow.lines(bytes.NewReader(journal), 0, int64(len(journal)))
		}
		if err != nil || !reflect.DeepEqual(quick, slow) {
			t.Errorf("%v\n%+v by indexes\n%+v by lines\n%s", err, quick, slow, journal)
		}
		if len(journal) == 0 {
			return
		}
		journal[int(flip)%len(journal)] ^= byte(flip>>8) | 1
		broken := &State{}
		broken.empty()
		if err := broken.scan(bytes.NewReader(journal), int64(len(journal))); err != nil && fault.Code(err) != int(fault.BadRecord) {
			t.Errorf("an error that is no BadRecord: %v", err)
		}
	})
}

// BenchmarkScan reads what must be known to go on with a run of 100,000 cells of an attempt each, with the lines that one of llama.cpp has:
// a gigabyte of journal. It fails where that takes longer than a second, or more memory than a gate of a plan's dry run has.
func BenchmarkScan(b *testing.B) {
	const cells, second, most = 100_000, time.Second, 300 * MiB
	dir := large(b, cells)
	info, err := os.Stat(filepath.Join(dir, journalFile))
	if err != nil {
		b.Fatal(err)
	}
	var heap runtime.MemStats
	for b.Loop() {
		began := time.Now()
		s, err := Scan(dir)
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		runtime.ReadMemStats(&heap)
		if len(s.cells) != cells || s.Attempts != cells {
			b.Fatalf("%d cells, %d attempts", len(s.cells), s.Attempts)
		}
		if took > second || heap.Sys > most {
			b.Errorf("%s and %d MiB, %s and %d MiB are what it may take", took, heap.Sys>>20, second, most>>20)
		}
	}
	b.ReportMetric(float64(info.Size())/MiB, "journal-MiB")
	b.ReportMetric(float64(heap.Sys)/MiB, "process-MiB")
}

// large is the folder of a run of many cells.
func large(b *testing.B, cells int) string {
	w := madeIn(b, b.TempDir(), indexEvery)
	w.mu.Lock()
	defer w.mu.Unlock()
	long := string(bytes.Repeat([]byte("what is measured and what can't be seen; "), 8))
	for id := 1; id <= cells; id++ {
		c := Cell{ID: id, Engine: "llamacpp", Model: Model{Name: "tiny-llama-2x128", SHA256: fmt.Sprintf("%064d", 0), Format: "gguf", Context: 1024},
			Prompt: long, MaxTokens: 64, Repetitions: 1, Isolation: OfLaunch, PromptCache: CacheOff}
		w.putLocked(entry{Cell: &c})
		w.putLocked(entry{Prediction: &Prediction{Cell: id, Source: "gguf", Parts: []Foretold{{Name: "total", Method: long + long + long + long}}}})
		w.putLocked(entry{Risk: &Risk{Cell: id, Level: RiskLow, Reasons: []string{long}}})
		w.putLocked(entry{Attempt: id, Begin: &beginEntry{Cell: id, Repetition: 1, Machine: &MachineState{Load1: 1, Governor: "performance"}}})
		for n := range 3 {
			w.putLocked(entry{Attempt: id, Source: &sourceLine{ID: 3*id + n, Source: Source{Role: "server", Method: MethodStatm, PID: 1, Sees: long}}})
		}
		for range 2 {
			w.putLocked(entry{Attempt: id, Event: &Event{Engine: &EngineInfo{Name: "llamacpp", Version: "b10107", Args: []string{long}}}})
		}
		for _, p := range Phases() {
			w.putLocked(entry{Attempt: id, Phase: &phaseLine{Name: p, Begin: 1, End: 2}})
		}
		for n := range 2 {
			w.putLocked(entry{Attempt: id, Request: &requestRow{ID: n + 1, Phase: Measure, PromptIDs: make([]int, 40), Text: long}})
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
