package protocol

import (
	"context"
	"fmt"
	"sync"
	"time"

	"llmparity/internal/record"
)

// gather is how long the first request of a batch waits for others.
const gather = 10 * time.Millisecond

// batches makes one request with several rows of requests that arrive together. Those that arrive while it is computed
// are the next one.
type batches struct {
	mu      sync.Mutex
	waiting []*member
	full    chan struct{} // closed once the waiting ones are a whole batch
	going   bool
}

// member is a generation of a batch.
type member struct {
	*generation
	ctx context.Context
	own sync.Mutex // held while the generation is changed
	// left: its caller has gone, and gets no more tokens.
	left  bool
	ended chan struct{}
	call  *call
	got   message
	err   error
}

// batched runs a generation as a row of the next batch.
func (s *session) batched(ctx context.Context, c *conn, g *generation) (record.Usage, error) {
	m := &member{generation: g, ctx: ctx, ended: make(chan struct{})}
	b := &s.batches
	b.mu.Lock()
	b.waiting = append(b.waiting, m)
	if len(b.waiting) == 1 {
		b.full = make(chan struct{})
	}
	if len(b.waiting) == s.engine.config.Batch {
		close(b.full)
	}
	if !b.going {
		b.going = true
		go s.batch(c)
	}
	b.mu.Unlock()
	select {
	case <-m.ended:
	case <-ctx.Done():
		m.own.Lock()
		m.left, m.err = true, ctx.Err()
		m.own.Unlock()
	}
	return s.generated(ctx, g, m.call, m.got, m.err)
}

// batch runs batches until no request waits.
func (s *session) batch(c *conn) {
	b := &s.batches
	for {
		b.mu.Lock()
		full := b.full
		if len(b.waiting) == 0 {
			b.going = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		select {
		case <-full:
		case <-time.After(gather):
		}
		b.mu.Lock()
		members := b.waiting
		b.waiting = nil
		b.mu.Unlock()
		s.rows(c, members)
	}
}

// rows asks for a batch, and passes on what belongs to each member.
func (s *session) rows(c *conn, members []*member) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	all := make([]fields, len(members))
	stay := make(chan struct{})
	for i, m := range members {
		all[i] = asked(m.request)
	}
	go func() { // a batch is cancelled once nobody waits for it
		for _, m := range members {
			select {
			case <-m.ctx.Done():
			case <-stay:
				return
			}
		}
		cancel()
	}()
	got, k, err := c.ask(ctx, opGenerate, fields{"rows": all}, func(k *call, r received) error {
		if r.Event != evToken {
			return nil
		}
		if r.Row < 0 || r.Row >= len(members) {
			return fmt.Errorf("a token of row %d of %d", r.Row, len(members))
		}
		m := members[r.Row]
		m.own.Lock()
		defer m.own.Unlock()
		if m.left {
			return nil
		}
		return m.take(k, r)
	})
	close(stay)
	if err == nil && len(got.Rows) != len(members) {
		err = c.fail(c.wrong(opGenerate, record.BadOutput, "%s violates the protocol: %d rows of %d", c.name, len(got.Rows),
			len(members)))
	}
	if err == nil {
		s.held.set(got.Held)
	}
	for i, m := range members {
		m.own.Lock()
		if !m.left {
			if m.call, m.err = k, err; err == nil {
				m.got = got.Rows[i]
			}
			close(m.ended)
		}
		m.own.Unlock()
	}
}
