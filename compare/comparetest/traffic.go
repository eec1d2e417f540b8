package comparetest

import (
	"slices"
	"time"

	"llmparity/internal/record"
)

// Loaded gives an engine a traffic: a cell of so many requests that so many clients send.
func Loaded(e Engine, id, clients, requests int) Engine {
	e.Cell.ID, e.Cell.Traffic = id, &record.Traffic{Loop: record.ClosedLoop, Concurrency: clients, Requests: requests,
		Seed: 1}
	return e
}

// Mixed gives an engine a traffic of two kinds, one request of the one after one of the other: the long ones take as
// many times as long.
func Mixed(e Engine, id, clients, requests int, times int) Engine {
	e = Loaded(e, id, clients, requests)
	e.Cell.Traffic.Mix = []record.Kind{{Name: "short", Share: 0.5, Prompt: "short", MaxTokens: e.Cell.MaxTokens},
		{Name: "long", Share: 0.5, Prompt: "long", MaxTokens: e.Cell.MaxTokens * times}}
	e.Cell.Traffic.Goal = &record.Goal{TTFTms: 2 * float64(e.TTFT) / float64(time.Millisecond)}
	return e
}

// asked is a request as it was carried out.
type asked struct {
	slot           record.Slot
	due, sent, end time.Time
	tokens         []record.Token
}

// traffic carries out a closed loop: a client asks again when it was answered, and what finds no free slot waits for
// one.
func (l *launch) traffic() {
	t := l.e.Cell.Traffic
	begin := l.g.now.Add(5 * time.Millisecond)
	clients := slices.Repeat([]time.Time{begin}, t.Concurrency)
	for i := range clients {
		clients[i] = begin.Add(time.Duration(i) * time.Duration(t.StartDelay*float64(time.Second)))
	}
	slots := make([]time.Time, t.Concurrency)
	if l.e.Slots > 0 {
		slots = slots[:min(l.e.Slots, len(slots))]
	}
	var all []asked
	last := begin
	for n := range t.Requests {
		client, slot := first(clients), first(slots)
		a := asked{slot: record.Slot{Client: client + 1}, due: clients[client]}
		a.sent = a.due
		if slots[slot].After(a.sent) {
			a.sent = slots[slot]
		}
		times := 1
		if k := len(t.Mix); k > 0 {
			kind := t.Mix[n%k]
			a.slot.Kind, times = kind.Name, kind.MaxTokens/t.Mix[0].MaxTokens
		}
		at := a.sent.Add(l.dur(l.e.TTFT) * time.Duration(times))
		for i, id := range slices.Concat(slices.Repeat([][]int{l.e.IDs}, times)...) {
			a.tokens = append(a.tokens, record.Token{Index: i, ID: id, At: at})
			at = at.Add(l.dur(time.Duration(float64(l.e.Token) * (0.8 + 0.4*l.g.rand.Float64()))))
		}
		a.end = a.tokens[len(a.tokens)-1].At.Add(2 * time.Millisecond)
		clients[client], slots[slot] = a.end, a.end
		if a.end.After(last) {
			last = a.end
		}
		all = append(all, a)
	}
	l.phase(record.Measure, last.Sub(l.g.now)+5*time.Millisecond,
		func(x float64) float64 { return 1.01 + 0.04*x + 0.02*float64(t.Concurrency) })
	slices.SortStableFunc(all, func(a, b asked) int { return a.end.Compare(b.end) }) // as they return
	for _, a := range all {
		u := l.usage(a.sent, a.tokens[0].At, a.tokens[len(a.tokens)-1].At)
		l.r.Request(a.slot, a.due, record.Measure, u, a.tokens, a.end)
	}
}

// first is whichever is free first.
func first(at []time.Time) int {
	return slices.IndexFunc(at, func(t time.Time) bool { return t.Equal(slices.MinFunc(at, time.Time.Compare)) })
}
