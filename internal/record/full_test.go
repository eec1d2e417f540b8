package record

import (
	"errors"
	"os"
	"testing"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/lines"
)

// /dev/full is a full disk.
func TestFullDiskErrorSticks(t *testing.T) {
	w := made(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	w.mu.Lock()
	_ = w.files[toSamples].Close()
	w.files[toSamples] = lines.To(full)
	w.mu.Unlock()

	c := Cell{ID: 1}
	w.Cell(c)
	r := w.Begin(c, Beginning{Repetition: 1})
	s := NewSample()
	s.RSS = 1
	r.Sample(r.Source(Source{}), s)
	r.End(OK, "", nil, Cost{})
	select {
	case <-w.Failed():
	case <-time.After(10 * time.Second):
		t.Fatal("a failed write is not reported")
	}
	err = w.Close(OK)
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.DiskFull {
		t.Errorf("%v, want a fault of kind DiskFull", err)
	}
	got, err := Open(w.Dir())
	if err != nil {
		t.Fatalf("the folder can't be read: %v", err)
	}
	if len(got.Attempts) > 0 && got.Attempts[0].Counted() {
		t.Error("an attempt without its rows counts")
	}
}
