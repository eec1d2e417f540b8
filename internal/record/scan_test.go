package record

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

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
			d.put(t, entry{Attempt: attempts,
				Begin: &beginEntry{Cell: n % (cells + 1), Repetition: n, Warmup: n%2 == 0}})
		case 2:
			attempts++
			d.put(t, entry{Attempt: attempts,
				Begin: &beginEntry{Cell: n, Warmup: true, Scoring: &Scoring{PromptIDs: []int{n}}}})
		case 3:
			if _, ok := d.state.begun[n]; ok {
				d.put(t, entry{Attempt: n,
					End: &endEntry{Status: []Status{OK, Failed}[n%2], Class: Class(text), Error: text}})
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

// FuzzIndex holds that what indexes say is what the lines say, wherever the journal is cut, and that what is no journal
// does no harm.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{0, 1, 5, 3, 14, 10, 1, 4, 10, 7, 18, 29, 0, 12, 15, 8, 2, 4, 10, 9}, `x,"index":{"at":0`, uint32(40),
		uint32(0))
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
		if err := broken.scan(bytes.NewReader(journal), int64(len(journal))); err != nil &&
			fault.Of(err) != fault.BadRecord {
			t.Errorf("an error that is no BadRecord: %v", err)
		}
	})
}
