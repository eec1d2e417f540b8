package record_test

import (
	"testing"
	"time"

	"llmparity/internal/record"
)

func TestRowsAllocateNothing(t *testing.T) {
	w, err := record.Create(t.TempDir(), record.Meta{Name: "rows", Started: time.Now()}, record.Environment{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(record.OK)
	rec := w.Begin(record.Cell{ID: 1, Engine: "webllm"}, record.Beginning{Repetition: 1})
	id := rec.Source(record.Source{Method: record.MethodStatm, Role: "renderer", PID: 7})
	s := record.NewSample()
	s.Begin, s.End, s.RSS, s.VMS = time.Now(), time.Now(), 3<<20, 4<<20
	total := record.Total{Sample: s, Method: record.MethodStatm, Processes: 1}
	if n := testing.AllocsPerRun(100, func() { rec.Sample(id, s) }); n > 0 {
		t.Errorf("a sample's row makes %.0f allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { rec.Total(total) }); n > 0 {
		t.Errorf("a total's row makes %.0f allocations", n)
	}
}
