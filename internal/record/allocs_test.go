package record

import (
	"testing"
	"time"
)

func TestRowsDoNotAllocate(t *testing.T) {
	w := made(t)
	defer w.Close(OK)
	rec := w.Begin(Cell{ID: 1, Engine: "webllm"}, Beginning{Repetition: 1})
	id := rec.Source(Source{Method: MethodStatm, Role: "renderer", PID: 7})
	s := NewSample()
	s.Begin, s.End, s.RSS, s.VMS = time.Now(), time.Now(), 3<<20, 4<<20
	total := Total{Sample: s, Method: MethodStatm, Processes: 1}
	if n := testing.AllocsPerRun(100, func() { rec.Sample(id, s) }); n > 0 {
		t.Errorf("a sample's row makes %.0f allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { rec.Total(total) }); n > 0 {
		t.Errorf("a total's row makes %.0f allocations", n)
	}
}
