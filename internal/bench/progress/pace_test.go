package progress

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"llmparity/internal/bench/run"
	"llmparity/internal/record"
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
	// time between launches does not count
	after(time.Minute, run.Event{Kind: run.Launched, Launch: 2, Engine: "quick"})
	after(2*time.Second, run.Event{Kind: run.Ended, Launch: 2, Engine: "quick"})
	if rest, _ := p.rest(now); rest != 12*time.Second { // two more, of 6 s on the whole
		t.Errorf("%s left, want 12 s", rest)
	}
	after(0, run.Event{Kind: run.Launched, Launch: 3, Engine: "slow", Memory: 7})
	if rest, _ := p.rest(now.Add(4 * time.Second)); rest != 8*time.Second {
		t.Errorf("%s left, want 8 s", rest)
	}
	if p.memory != 0 {
		t.Error("the memory of an earlier launch is shown")
	}
}

// Launches of two runs that alternate take the time of both.
func TestTimeLeftIsThatOfAllSides(t *testing.T) {
	var out strings.Builder
	p := New(&out, false)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ended := func(p *Progress, launch int, took time.Duration) {
		e := run.Event{Kind: run.Launched, Engine: "webllm", Launch: launch, Launches: 3}
		p.pace.take(e, now)
		now, e.Kind = now.Add(took), run.Ended
		p.pace.take(e, now)
		p.print(e, now)
	}
	other := p.Beside("baseline run")
	ended(other, 1, 10*time.Second)
	ended(p, 1, 20*time.Second)
	ended(other, 2, 10*time.Second)
	for i, want := range []string{"", "(60 s left)", "(50 s left)"} { // of one side alone it is not known
		if line := strings.Split(out.String(), "\n")[i]; !strings.HasSuffix(line, want) ||
			want == "" && strings.Contains(line, "left") {
			t.Errorf("%q, want %q", line, want)
		}
	}
}

// A log says every half minute what a slow launch does.
func TestSlowLaunchesAreNotSilent(t *testing.T) {
	var out strings.Builder
	p := New(&out, false)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := run.Event{Engine: "webllm", Launch: 1, Launches: 14, Repetition: 1, Repetitions: 6, Tokens: 64}
	after := func(d time.Duration, kind run.EventKind, phase record.Phase) {
		now = now.Add(d)
		e.Kind, e.Phase = kind, phase
		p.pace.take(e, now)
		p.print(e, now)
	}
	after(0, run.Launched, "")
	after(10*time.Second, run.Entered, record.Load)
	after(30*time.Second, run.Entered, record.Measure)
	for range 64 {
		e.Token++
		after(time.Second, run.Generated, record.Measure)
	}
	const want = "[1/14] webllm 1 of 6: prefilling\n[1/14] webllm 1 of 6: decoding, 30 of 64 tokens, 1 tokens/s\n" +
		"[1/14] webllm 1 of 6: decoding, 60 of 64 tokens, 1 tokens/s\n"
	if out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}

func TestLiveLineShowsTheState(t *testing.T) {
	var out strings.Builder
	width := 100
	p := New(&out, false)
	p.width = func() int { return width }
	e := run.Event{Engine: "webllm", Cell: 2, Cells: 8, Launch: 3, Launches: 12, Repetition: 3, Repetitions: 6,
		Phase: record.Measure, Tokens: 64}
	send := func(kind run.EventKind, token int) string {
		out.Reset()
		e.Kind, e.Token, e.Memory = kind, token, 441<<20
		p.drawn = time.Time{}
		p.Event(e)
		return out.String()
	}
	if got, want := send(run.Entered, 0), "\r\x1b[Kcell 2/8  webllm 3/6  prefilling  441 MiB"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := send(run.Generated, 41); !strings.Contains(got, "webllm 3/6  decoding 41/64  ") {
		t.Errorf("%q", got)
	}
	out.Reset()
	if p.Event(e); out.Len() > 0 {
		t.Errorf("drew twice within %s: %q", redraw, &out)
	}
	width = 20
	if got := send(run.Entered, 0); got != "\r\x1b[Kcell 2/8  webllm 3…" {
		t.Errorf("%q does not fit in 20 columns", got)
	}
	e.Err = errors.New("device lost")
	e.Text = "failed"
	got := send(run.Ended, 0)
	if line := "\r\x1b[K[3/12] webllm 3 of 6: failed, cell 2 of 8: device lost\n"; !strings.HasPrefix(got, line) {
		t.Errorf("a failure stays on the terminal: %q", got)
	}
	if got := send(run.Ended, 0); !strings.Contains(got, "failed, cell 2 of 8: the same error as before\n") {
		t.Errorf("an error is repeated: %q", got)
	}
}

// While windows are scored, progress says how long the rest takes. The first window includes the load.
func TestScoringShowsTimeLeft(t *testing.T) {
	var out strings.Builder
	p := New(&out, false)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := run.Event{Kind: run.Scoring, Engine: "webllm", Tokens: 10, Left: 40}
	send := func(d time.Duration, token int) {
		now = now.Add(d)
		if e.Token = token; token > 0 {
			e.Left--
		}
		p.pace.take(e, now)
		p.print(e, now)
	}
	window := func(text string, load, each time.Duration) {
		e.Text = text
		send(0, 0)
		for n := range e.Tokens { // all at once
			send(map[bool]time.Duration{true: load + 10*each}[n == 0], n+1)
		}
	}
	window("window 1 of 4", time.Minute, 2*time.Second)
	if rest, known := p.pace.rest(now); !known || rest != 240*time.Second { // 80 s for each of three more
		t.Errorf("%s left after the first window", rest)
	}
	window("window 2 of 4", 0, 2*time.Second)
	if rest, _ := p.pace.rest(now.Add(10 * time.Second)); rest != 30*time.Second {
		t.Errorf("%s left, 10 s after the second window", rest)
	}
	window("window 3 of 4", 0, 2*time.Second)
	if got := p.line(e, now); got.LeftS == nil || *got.LeftS != 20 {
		t.Errorf("JSON has %v", got.LeftS)
	}
	const want = "webllm: scoring 10 tokens for window 1 of 4 (not measured)\n" +
		"webllm: scoring 10 tokens for window 2 of 4 (not measured; 4 min left)\n" // the third came 20 s later
	if out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
	p.pace.take(run.Event{Kind: run.Launched, Launch: 1, Launches: 2}, now)
	if _, known := p.pace.rest(now); known {
		t.Error("scoring's rest is shown of launches")
	}
}

// Scoring that was predicted is in the time left from the first launch on, and each part of it only once.
func TestTimeLeftHasPredictedScoring(t *testing.T) {
	p := New(io.Discard, true)
	p.Expect([]Scoring{{1, "webllm", time.Hour}, {1, "llamacpp", time.Minute}, {2, "webllm", 2 * time.Hour}}, true)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(d time.Duration, e run.Event, want time.Duration) {
		t.Helper()
		now = now.Add(d)
		p.pace.take(e, now)
		if rest, known := p.pace.rest(now); !known || rest != want {
			t.Errorf("%s left, want %s", rest, want)
		}
	}
	p.pace.take(run.Event{Kind: run.Launched, Launch: 1, Launches: 1}, now)
	after(time.Second, run.Event{Kind: run.Ended, Engine: "webllm", Launch: 1, Launches: 1}, 3*time.Hour+time.Minute)
	text := run.Event{Kind: run.Scoring, Engine: "webllm", Tokens: 1, Left: 3}
	after(time.Second, text, 3*time.Hour+time.Minute)
	text.Token, text.Left = 1, 2
	after(10*time.Minute, text, 20*time.Minute+2*time.Hour) // by now measured
	after(0, run.Event{Kind: run.Scoring, Engine: "llamacpp", Tokens: 1, Left: 2}, time.Minute+2*time.Hour)
}
