package progress

import (
	"testing"
	"time"

	"llmparity/internal/run"
)

func TestPace(t *testing.T) {
	var p pace
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(d time.Duration, e run.Event) {
		now = now.Add(d)
		e.Launches = 4
		p.take(e, now)
	}
	if _, known := p.rest(now); known {
		t.Error("the rest is known before anything has ended")
	}
	after(0, run.Event{Kind: run.Ended, Launch: 0, Engine: "refused"}) // a cell that was not launched
	if rest, known := p.rest(now); known {
		t.Errorf("%s left, though nothing was launched", rest)
	}
	after(0, run.Event{Kind: run.Launched, Launch: 1, Engine: "slow"})
	for range 5 {
		after(time.Second, run.Event{Kind: run.Generated, Memory: 7})
	}
	if rate := p.rate(now); rate != 1 {
		t.Errorf("%g tokens/s, want 1", rate)
	}
	after(5*time.Second, run.Event{Kind: run.Ended, Launch: 1, Engine: "slow"})
	if rest, known := p.rest(now); !known || rest != 30*time.Second {
		t.Errorf("%s left, want 30 s", rest)
	}
	// what lies between launches is not the next one's
	after(time.Minute, run.Event{Kind: run.Launched, Launch: 2, Engine: "quick"})
	after(2*time.Second, run.Event{Kind: run.Ended, Launch: 2, Engine: "quick"})
	if rest, _ := p.rest(now); rest != 12*time.Second { // two more, of 6 s on the whole
		t.Errorf("%s left, want 12 s", rest)
	}
	after(0, run.Event{Kind: run.Launched, Launch: 3, Engine: "slow"})
	if rest, _ := p.rest(now.Add(4 * time.Second)); rest != 8*time.Second {
		t.Errorf("%s left, want 8 s", rest)
	}
	if p.memory != 0 {
		t.Error("an earlier launch's memory is told")
	}
}
