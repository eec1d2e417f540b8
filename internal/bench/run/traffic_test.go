package run_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// busy is an engine that serves several requests at once, 10 ms a token; prompts with "wrong" fail.
type busy struct {
	scripted
	mu    sync.Mutex
	slots int
	going int
	most  int
	asked []string
	wrong *engine.Failure
}

func newBusy(slots int) *busy {
	e := &busy{slots: slots}
	e.name, e.generate = "a", e.answer
	e.caps = &engine.Caps{Isolation: record.OfLaunch, Requests: slots, TokenIDs: true, Exact: true, IgnoreEOS: true}
	return e
}

func (e *busy) answer(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	e.mu.Lock()
	if e.going == e.slots {
		e.mu.Unlock()
		return record.Usage{}, engine.ErrBusy
	}
	e.going++
	e.most = max(e.most, e.going)
	e.asked = append(e.asked, r.Prompt)
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.going--
	}()
	u := record.Usage{PromptIDs: make([]int, len(strings.Fields(r.Prompt))), Sent: time.Now(), Finish: "length",
		Text: " answer"}
	for i := range r.MaxTokens {
		if err := passes(ctx, 10*time.Millisecond); err != nil {
			return u, err
		}
		token(record.Token{Index: i, ID: i, At: time.Now()})
		if e.wrong != nil && i == 1 && strings.Contains(r.Prompt, "wrong") {
			return u, e.wrong
		}
	}
	return u, nil
}

func passes(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// loaded is a plan in which several clients send requests.
func loaded(t *testing.T, e engine.Engine, clients, requests int) trial {
	o := options(t, e)
	o.Plan.Repetitions, o.Plan.Warmup.Launches = 1, 0
	o.Plan.Concurrency, o.Plan.Traffic = []int{clients}, &plan.Traffic{Loop: record.ClosedLoop, Requests: requests}
	o.ask = func(c record.Cell, _ traffic.Request) engine.Request {
		return engine.Request{Prompt: c.Prompt, MaxTokens: c.MaxTokens}
	}
	return o
}

func TestTrafficRecordsEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newBusy(4)
		r := whole(t, loaded(t, e, 4, 12))
		got := r.Attempts[0].Measured()
		clients := map[int]int{}
		for _, q := range got {
			clients[q.Client]++
			if q.Due == 0 || q.SentNS-q.Due > int64(time.Millisecond) || len(q.Tokens) != 4 || q.Finish != "length" {
				t.Errorf("request %d: %+v", q.ID, q)
			}
		}
		if len(got) != 12 || e.most != 4 || len(clients) != 4 || clients[1] != 3 || r.Cells[0].Traffic == nil ||
			r.Cells[0].Traffic.Concurrency != 4 {
			t.Errorf("%d requests of the clients %v, %d at once; %+v", len(got), clients, e.most, r.Cells[0].Traffic)
		}
	})
}

// Queueing is in the record and is not the engine's time.
func TestRequestsQueueForSerialEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newBusy(1)
		r := whole(t, loaded(t, e, 3, 3))
		for i, q := range r.Attempts[0].Measured() {
			if waited := time.Duration(q.SentNS - q.Due).Round(time.Millisecond); waited != time.Duration(
				i)*40*time.Millisecond || q.Late > int64(time.Millisecond) {
				t.Errorf("request %d waited %s", q.ID, waited)
			}
		}
		if e.most != 1 {
			t.Errorf("%d requests at once", e.most)
		}
	})
}

func TestFailedRequestKeepsOthers(t *testing.T) {
	for class, c := range map[record.Class]struct {
		status record.Status
		warned int
	}{record.Other: {record.OK, 1}, record.Crash: {record.Failed, 0}} {
		synctest.Test(t, func(t *testing.T) {
			e := newBusy(2)
			e.wrong = engine.Fail(class, "it went wrong")
			o := loaded(t, e, 2, 6)
			o.ask = func(_ record.Cell, q traffic.Request) engine.Request {
				r := engine.Request{Prompt: "right", MaxTokens: 4}
				if q.Index == 2 {
					r.Prompt = "wrong"
				}
				return r
			}
			r, err := do(t, t.Context(), o)
			a := r.Attempts[0]
			if a.Status != c.status || (err == nil) != (c.status == record.OK) ||
				warned(r, 0, "request-failed") != c.warned {
				t.Errorf("%s: %v; %s %s, %v", class, err, a.Status, a.Class, a.Warnings)
			}
			for _, q := range a.Requests {
				if q.Finish == record.FailedRequest && len(q.Tokens) != 2 {
					t.Errorf("%d tokens of the failed request are kept", len(q.Tokens))
				}
			}
			if len(a.Measured()) != 5 || a.Unanswered() != 1 {
				t.Errorf("%s: %d requests were answered, %d failed", class, len(a.Measured()), a.Unanswered())
			}
		})
	}
}

func TestTurnContinuesConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newBusy(1)
		o := loaded(t, e, 1, 3)
		o.Plan.Traffic.Turns = 3
		o.ask = func(_ record.Cell, q traffic.Request) engine.Request {
			return engine.Request{Prompt: q.Before + fmt.Sprint(" turn", q.Turn), MaxTokens: 4}
		}
		r := whole(t, o)
		want := []string{" turn1", " turn1 answer turn2", " turn1 answer turn2 answer turn3"}
		if got := e.asked[1:]; !slices.Equal(got, want) { // after the warm-up
			t.Errorf("asked %q, want %q", got, want)
		}
		for i, q := range r.Attempts[0].Measured() {
			if q.Turn != i+1 {
				t.Errorf("request %d is turn %d", q.ID, q.Turn)
			}
		}
	})
}

// The record tells prompts apart, because servers may report no ids of them.
func TestRecordHasHashOfEachPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := loaded(t, newBusy(1), 1, 4)
		o.ask = func(_ record.Cell, q traffic.Request) engine.Request {
			return engine.Request{Prompt: fmt.Sprint("prompt ", q.Index%2), MaxTokens: 4}
		}
		for i, q := range whole(t, o).Attempts[0].Measured() {
			if want := record.HashOf(fmt.Sprint("prompt ", i%2)); q.PromptHash != want {
				t.Errorf("request %d: hash %q, want %q", q.ID, q.PromptHash, want)
			}
		}
	})
}

// The warm-up must not put the first request's prompt into a cache.
func TestWarmupUsesAnotherPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newBusy(1)
		o := loaded(t, e, 1, 3)
		o.ask = func(_ record.Cell, q traffic.Request) engine.Request {
			return engine.Request{Prompt: fmt.Sprint("prompt ", q.Index), MaxTokens: 4}
		}
		if _, err := do(t, t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if len(e.asked) != 4 || slices.Contains(e.asked[1:], e.asked[0]) {
			t.Errorf("asked %q", e.asked)
		}
	})
}

func TestWrongInputLengthWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newBusy(1)
		o := options(t, e)
		o.Plan.Prompts, o.Plan.InputLengths, o.Plan.Repetitions, o.Plan.Warmup.Launches = nil, []int{3, 5}, 1, 0
		o.Plan.Context = 32
		parts := o.Parts
		o.Open = func(_ context.Context, s *plan.Setup) (run.Parts, error) {
			for i := range s.Cells {
				s.Cells[i].Prompt = "one two three"
			}
			return parts, nil
		}
		r := whole(t, o)
		if n, m := warned(r, 0, "input-length"), warned(r, 1, "input-length"); n != 0 || m != 1 ||
			r.Cells[1].InputTokens != 5 {
			t.Errorf("%d and %d warnings: %+v", n, m, r.Attempts[1].Warnings)
		}
	})
}
