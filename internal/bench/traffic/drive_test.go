package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// sent is a request as the tests see it; times are milliseconds since the start.
type sent struct{ index, client, turn, slot, due, sent, ended int }

// drive drives a traffic in a synctest bubble in which each request takes the given milliseconds.
func drive(t *testing.T, traffic record.Traffic, slots int, takes func(Request) int) []sent {
	t.Helper()
	s := New(traffic)
	var out []sent
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ms := func(at time.Time) int { return int(at.Sub(begin) / time.Millisecond) }
		report := Drive(t.Context(), s, slots, func(_ context.Context, r Request) (string, error) {
			time.Sleep(time.Duration(takes(r)) * time.Millisecond)
			return "", nil
		})
		check.Also(t, report.Err())
		if l := report.Lateness(); l.Max != 0 {
			t.Errorf("requests are late although time stands still: %+v", l)
		}
		for _, o := range report.Outcomes {
			out = append(out, sent{o.Index, o.Client, o.Turn, o.Slot, ms(o.Due), ms(o.Sent), ms(o.Ended)})
		}
	})
	return out
}

func always(ms int) func(Request) int { return func(Request) int { return ms } }

func TestWhenRequestsAreSent(t *testing.T) {
	for _, c := range []struct {
		name    string
		traffic record.Traffic
		slots   int
		takes   func(Request) int
		want    []sent
	}{
		{"a closed loop: a client asks again when it was answered",
			record.Traffic{Loop: record.ClosedLoop, Concurrency: 2, Requests: 5}, 8,
			func(r Request) int { return 100 * r.Client }, []sent{
				{0, 1, 0, 0, 0, 0, 100}, {1, 2, 0, 1, 0, 0, 200}, {2, 1, 0, 0, 100, 100, 200},
				{3, 2, 0, 1, 200, 200, 400}, {4, 1, 0, 0, 200, 200, 300}}},
		{"start delays", record.Traffic{Loop: record.ClosedLoop, Concurrency: 3, Requests: 4, StartDelay: .05}, 8,
			always(1000), []sent{
				{0, 1, 0, 0, 0, 0, 1000}, {1, 2, 0, 1, 50, 50, 1050}, {2, 3, 0, 2, 100, 100, 1100},
				{3, 1, 0, 0, 1000, 1000, 2000}}},
		{"one place: who was due first goes first, and what it waited is seen",
			record.Traffic{Loop: record.ClosedLoop, Concurrency: 3, Requests: 6}, 1, always(10), []sent{
				{0, 1, 0, 0, 0, 0, 10}, {1, 2, 0, 0, 0, 10, 20}, {2, 3, 0, 0, 0, 20, 30}, {3, 1, 0, 0, 10, 30, 40},
				{4, 2, 0, 0, 20, 40, 50}, {5, 3, 0, 0, 30, 50, 60}}},
		{"an open loop does not wait for answers",
			record.Traffic{Loop: record.OpenLoop, Arrivals: record.Constant, Rate: 10, Requests: 3}, 8, always(1000),
			[]sent{
				{0, 1, 0, 0, 0, 0, 1000}, {1, 2, 0, 1, 100, 100, 1100}, {2, 3, 0, 2, 200, 200, 1200}}},
		{"but no more than so many are sent and not answered",
			record.Traffic{Loop: record.OpenLoop, Arrivals: record.Constant, Rate: 10, Requests: 3, Concurrency: 1},
			8, always(150),
			[]sent{{0, 1, 0, 0, 0, 0, 150}, {1, 2, 0, 0, 100, 150, 300}, {2, 3, 0, 0, 200, 300, 450}}},
		// A ramp of 2 s to a rate of 10 has 10 requests, the n-th at √(n·0.4) s.
		{"a ramp", record.Traffic{Loop: record.OpenLoop, Arrivals: record.Constant, Rate: 10, Ramp: 2, Requests: 13},
			20, always(1), []sent{
				{0, 1, 0, 0, 0, 0, 1}, {1, 2, 0, 0, 632, 632, 633}, {2, 3, 0, 0, 894, 894, 895},
				{3, 4, 0, 0, 1095, 1095, 1096}, {4, 5, 0, 0, 1264, 1264, 1265},
				{5, 6, 0, 0, 1414, 1414, 1415}, {6, 7, 0, 0, 1549, 1549, 1550}, {7, 8, 0, 0, 1673, 1673, 1674},
				{8, 9, 0, 0, 1788, 1788, 1789},
				{9, 10, 0, 0, 1897, 1897, 1898}, {10, 11, 0, 0, 2000, 2000, 2001}, {11, 12, 0, 0, 2100, 2100, 2101},
				{12, 13, 0, 0, 2200, 2200, 2201}}},
		{"batches, the next when all of one were answered",
			record.Traffic{Loop: record.Batch, Concurrency: 2, Requests: 5}, 8,
			func(r Request) int { return 100 * r.Client }, []sent{
				{0, 1, 0, 0, 0, 0, 100}, {1, 2, 0, 1, 0, 0, 200}, {2, 1, 0, 0, 200, 200, 300},
				{3, 2, 0, 1, 200, 200, 400}, {4, 1, 0, 0, 400, 400, 500}}},
		{"a batch of an engine that does one at a time",
			record.Traffic{Loop: record.Batch, Concurrency: 3, Requests: 3}, 1, always(100), []sent{
				{0, 1, 0, 0, 0, 0, 100}, {1, 2, 0, 0, 0, 100, 200}, {2, 3, 0, 0, 0, 200, 300}}},
		{"conversations", record.Traffic{Loop: record.ClosedLoop, Concurrency: 2, Requests: 6, Turns: 2}, 8,
			func(r Request) int { return 100 * r.Client }, []sent{
				{0, 1, 1, 0, 0, 0, 100}, {1, 1, 2, 0, 100, 100, 200}, {2, 2, 1, 1, 0, 0, 200},
				{3, 2, 2, 1, 200, 200, 400},
				{4, 1, 1, 0, 200, 200, 300}, {5, 1, 2, 0, 300, 300, 400}}},
		{"conversations in batches", record.Traffic{Loop: record.Batch, Concurrency: 2, Requests: 4, Turns: 2}, 8,
			func(r Request) int { return 100 * r.Client }, []sent{
				{0, 1, 1, 0, 0, 0, 100}, {1, 2, 1, 1, 0, 0, 200}, {2, 1, 2, 0, 200, 200, 300},
				{3, 2, 2, 1, 200, 200, 400}}},
		{"conversations that come in an open loop",
			record.Traffic{Loop: record.OpenLoop, Arrivals: record.Constant, Rate: 10, Requests: 4, Turns: 2},
			8, always(70), []sent{
				{0, 1, 1, 0, 0, 0, 70}, {1, 1, 2, 1, 70, 70, 140}, {2, 2, 1, 0, 100, 100, 170},
				{3, 2, 2, 0, 170, 170, 240}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := drive(t, c.traffic, c.slots, c.takes)
			for i := range got { // TestPlaces checks which of two free places is used
				got[i].slot = c.want[min(i, len(c.want)-1)].slot
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%v, want\n%v", got, c.want)
			}
		})
	}
}

// A request uses the place that has been free longest, and has it alone.
func TestPlaces(t *testing.T) {
	got := drive(t, record.Traffic{Loop: record.OpenLoop, Arrivals: record.Poisson, Rate: 100, Requests: 500, Seed: 3},
		4, always(45))
	slices.SortFunc(got, func(a, b sent) int { return a.sent - b.sent })
	free := make([]int, 4)
	for _, s := range got {
		if s.sent < free[s.slot] {
			t.Fatalf("%+v was sent while the previous request ran until %d", s, free[s.slot])
		}
		free[s.slot] = s.ended
	}
}

func TestTurnContinuesConversation(t *testing.T) {
	for _, loop := range []string{record.ClosedLoop, record.Batch, record.OpenLoop} {
		s := New(record.Traffic{Loop: loop, Concurrency: 2, Requests: 12, Turns: 3, Arrivals: record.Constant,
			Rate: 1})
		synctest.Test(t, func(t *testing.T) {
			report := Drive(t.Context(), s, 2, func(_ context.Context, r Request) (string, error) {
				want := ""
				for turn := range r.Turn - 1 {
					want += fmt.Sprintf("%d.%d ", r.Conversation, turn+1)
				}
				if r.Before != want {
					t.Errorf("%s: conversation %d, turn %d continues from %q, want %q", loop, r.Conversation, r.Turn,
						r.Before, want)
				}
				if r.Conversation == 2 && r.Turn == 2 {
					return "", errors.New("broken")
				}
				return fmt.Sprintf("%s%d.%d ", r.Before, r.Conversation, r.Turn), nil
			})
			for _, o := range report.Outcomes {
				unsent := o.Conversation == 2 && o.Turn == 3
				if o.Sent.IsZero() != unsent || errors.Is(o.Err, ErrBefore) != unsent || o.Due.IsZero() {
					t.Errorf("%s: %+v", loop, o)
				}
			}
			if err := report.Err(); err == nil ||
				!strings.Contains(err.Error(), "2 of 12 requests failed; the first: broken") {
				t.Errorf("%s: %v", loop, err)
			}
		})
	}
}

// A batch in which all conversations failed is skipped, and the next one sent.
func TestBatchesOfBrokenConversations(t *testing.T) {
	s := New(record.Traffic{Loop: record.Batch, Concurrency: 2, Requests: 12, Turns: 3})
	synctest.Test(t, func(t *testing.T) {
		report := Drive(t.Context(), s, 2, func(_ context.Context, r Request) (string, error) {
			if r.Conversation < 2 {
				return "", errors.New("broken")
			}
			return "", nil
		})
		for _, o := range report.Outcomes {
			if o.Sent.IsZero() != (o.Conversation < 2 && o.Turn > 1) || (o.Err == nil) != (o.Conversation >= 2) {
				t.Errorf("%+v", o)
			}
		}
	})
}

func TestCancel(t *testing.T) {
	s := New(record.Traffic{Loop: record.OpenLoop, Arrivals: record.Constant, Rate: 10, Requests: 100})
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(450*time.Millisecond, func() { cancel(enough) })
		begin := time.Now()
		report := Drive(ctx, s, 3, func(ctx context.Context, _ Request) (string, error) {
			select {
			case <-ctx.Done():
				time.Sleep(time.Millisecond)
				return "", ctx.Err()
			case <-time.After(time.Minute):
				return "", nil
			}
		})
		if took := time.Since(begin); took != 451*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		for i, o := range report.Outcomes {
			if o.Sent.IsZero() != (i >= 3) || o.Err == nil || i >= 3 && !errors.Is(o.Err, enough) {
				t.Errorf("%+v", o)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		report := Drive(ctx, s, 3, func(context.Context, Request) (string, error) {
			t.Error("a request was sent after the end")
			return "", nil
		})
		if err := report.Err(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestLatenessIsReported(t *testing.T) {
	o := []Outcome{}
	for i := range 200 {
		at := time.Unix(0, 0)
		o = append(o, Outcome{Request: Request{Due: at, Late: time.Duration(i) * time.Millisecond},
			Sent: at.Add(time.Second)})
	}
	o = append(o, Outcome{Err: ErrBefore}) // never sent
	r := Report{Outcomes: o}
	if got, want := r.Lateness(), (Lateness{99 * time.Millisecond, 197 * time.Millisecond,
		199 * time.Millisecond}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if w := r.Warnings(); len(w) != 1 || w[0].Code != "load-late" || !strings.Contains(w[0].Text, "197ms") {
		t.Errorf("%+v", w)
	}
	if w := (Report{Outcomes: o[:5]}).Warnings(); w != nil {
		t.Errorf("%+v", w)
	}
}

// For any traffic: each request is sent once, each client's in order, and never more at once than there are places.
func FuzzDrive(f *testing.F) {
	f.Add(uint8(0), uint8(3), uint8(20), uint8(2), uint8(0), uint64(1))
	f.Add(uint8(1), uint8(0), uint8(200), uint8(1), uint8(3), uint64(2))
	f.Add(uint8(2), uint8(9), uint8(77), uint8(200), uint8(2), uint64(3))
	f.Add(uint8(3), uint8(1), uint8(1), uint8(0), uint8(0), uint64(4))
	f.Fuzz(func(t *testing.T, loop, clients, requests, slots, turns uint8, seed uint64) {
		traffic := record.Traffic{Loop: []string{record.ClosedLoop, record.OpenLoop, record.Batch,
			record.OpenLoop}[loop%4], Concurrency: int(clients % 20),
			Turns: int(turns % 5), Arrivals: []string{record.Constant, record.Poisson}[loop/4%2], Rate: 50, Seed: seed,
			StartDelay: float64(seed%3) / 100, Ramp: float64(seed % 4),
			Mix: []record.Kind{{Name: "short", Share: .9}, {Name: "long", Share: .1}}}
		traffic.Requests = int(requests) * max(1, traffic.Turns)
		if requests == 0 || traffic.Concurrency == 0 && traffic.Loop != record.OpenLoop {
			return
		}
		s := New(traffic)
		random := rand.New(rand.NewPCG(seed, 1))
		takes := make([]time.Duration, traffic.Requests)
		for i := range takes {
			takes[i] = time.Duration(random.IntN(200)) * time.Millisecond
		}
		synctest.Test(t, func(t *testing.T) {
			var going, most atomic.Int64
			var mu sync.Mutex
			times := make([]int, traffic.Requests)
			report := Drive(t.Context(), s, int(slots), func(_ context.Context, r Request) (string, error) {
				n := going.Add(1)
				mu.Lock()
				most.Store(max(n, most.Load()))
				times[r.Index]++
				mu.Unlock()
				time.Sleep(takes[r.Index])
				going.Add(-1)
				return "said", nil
			})
			if err := report.Err(); err != nil || len(report.Outcomes) != traffic.Requests {
				t.Fatalf("%d outcomes, %v", len(report.Outcomes), err)
			}
			if n := int(most.Load()); n > max(1, int(slots)) || traffic.Concurrency > 0 && n > traffic.Concurrency {
				t.Errorf("%d requests at once with %d places in %+v", n, slots, traffic)
			}
			due, ended := map[int]time.Time{}, map[int]time.Time{}
			for i, o := range report.Outcomes {
				if times[i] != 1 || o.Index != i || o.Sent.Before(o.Due) || o.Ended.Sub(o.Sent) != takes[i] ||
					o.Late != 0 {
					t.Fatalf("%d times sent: %+v", times[i], o)
				}
				if o.Due.Before(due[o.Client]) || o.Sent.Before(ended[o.Client]) || (o.Before != "") != (o.Turn > 1) {
					t.Fatalf("out of its client's order: %+v", o)
				}
				due[o.Client], ended[o.Client] = o.Due, o.Ended
			}
		})
	})
}
