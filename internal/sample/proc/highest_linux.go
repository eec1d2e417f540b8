package proc

import (
	"slices"
	"time"

	"llmparity/internal/record"
)

// Highest finds the moment at which processes hold the most together, and what they hold then. Mappings are dear to read: between two
// readings each process's are carried forward by the growth of its anonymous RSS, and shared memory by the growth of what any one of
// them sees. Files are left as they were: other programs share them.
type Highest struct {
	at    time.Time
	total int64
	held  map[*Mappings]Kinds

	read int64     // the total when mappings were read last
	rest time.Time // until when they are not read again
}

const (
	// mappingsAtMostOneIn bounds what reading mappings between phase edges takes of a core.
	mappingsAtMostOneIn = 200
	// worthReading is the growth, as a part of what was read last, at which mappings are read anew.
	worthReading = 4
)

// Follow looks at the processes now. It is called every so often, from one goroutine.
func (h *Highest) Follow(all []*Mappings) {
	now := time.Now()
	held, total, cost := carried(all)
	if h.rest.IsZero() {
		h.read, h.rest = total, now.Add(cost*mappingsAtMostOneIn)
	}
	if total > h.read+h.read/worthReading && now.After(h.rest) {
		for _, m := range all {
			r := record.NewSample()
			_, _ = m.read(&r) // one that has ended is left out of what is carried
		}
		now = time.Now()
		held, total, cost = carried(all)
		h.read, h.rest = total, now.Add(cost*mappingsAtMostOneIn)
	}
	if total > h.total {
		h.at, h.total, h.held = now, total, held
	}
}

// carried is what the processes hold now by their latest readings, and what those took. Of shared memory the one who sees most of it sees
// nearly all; that another comes to see the same is no growth.
func carried(all []*Mappings) (held map[*Mappings]Kinds, total int64, cost time.Duration) {
	held = map[*Mappings]Kinds{}
	var before, now int64
	var sharer *Mappings
	for _, m := range all {
		read, sees, ok := m.now()
		if !ok {
			continue
		}
		cost += read.cost
		read.kinds[Anonymous] += sees.anonymous - read.anonymous
		held[m] = read.kinds
		total += read.kinds.Sum()
		before = max(before, read.shared)
		if sharer == nil || sees.shared > now {
			now, sharer = sees.shared, m
		}
	}
	if k, ok := held[sharer]; ok {
		k[Shared] += now - before
		held[sharer] = k
		total += now - before
	}
	return held, total, cost
}

// Tell hands over what was held at the highest moment, as a reading of each process.
func (h *Highest) Tell() {
	order := make([]*Mappings, 0, len(h.held))
	for m := range h.held {
		order = append(order, m)
	}
	slices.SortFunc(order, func(a, b *Mappings) int { return a.pid - b.pid })
	for _, m := range order {
		if m.push != nil {
			r := record.NewSample()
			r.Begin, r.End, r.Values = h.at, h.at, h.held[m].values()
			m.push(r)
		}
	}
}
