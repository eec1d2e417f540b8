package browser

import (
	"testing"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// The longest block lies in the span in which the page was busy, and is at least as long as that, but for a beat.
func TestLongestBlock(t *testing.T) {
	p, _ := fresh(t, Config{})
	for range 2 { // a watch leaves nothing to the next
		check.Err(t, p.watchBlocks(watched(t)))
		begin := time.Now()
		_, err := Call[any](watched(t), p, "(() => { const end = performance.now() + 300; while (performance.now() < end); })()")
		check.Err(t, err)
		between := time.Now()
		_, err = Call[any](watched(t), p, "new Promise((done) => setTimeout(done, 50))")
		check.Err(t, err)
		end := time.Now()
		found, err := p.blocks(watched(t), []record.Span{{Name: record.Prefill, Begin: begin, End: between},
			{Name: record.Decode, Begin: between, End: end}})
		check.Err(t, err)
		busy, idle := found[0], found[1]
		if took := busy.End.Sub(busy.Begin); busy.Name != "longest block in prefill" || took < 270*time.Millisecond {
			t.Errorf("%+v took %v", busy, took)
		}
		if idle.Name != "longest block in decode" || idle.End.Before(idle.Begin) ||
			idle.Begin.Before(between.Add(-time.Millisecond)) {
			t.Errorf("%+v", idle)
		}
	}
	// In none, there is none.
	check.Err(t, p.watchBlocks(watched(t)))
	if found, err := p.blocks(watched(t), nil); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}
