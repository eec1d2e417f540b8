package run

import (
	"context"
	"sync/atomic"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/gpu"
)

// live is a session with what reads it. It is an attempt's own, or goes on from one repetition to the next.
type live struct {
	totals  *totals
	sampler *sample.Sampler
	session engine.Session // nil until it is open
	opener  int            // the attempt that opened it
	of      any            // whose it is, as turns name it
}

func newLive(ctx context.Context, opener int, of any, memory *atomic.Int64) *live {
	memory.Store(0)
	t := &totals{relay: &relay{}, memory: memory}
	return &live{totals: t, sampler: sample.New(ctx, t), opener: opener, of: of}
}

// close ends the session. What it says at its end still reaches the attempt's record.
func (l *live) close() error {
	if l.session == nil {
		return nil
	}
	return l.session.Close()
}

// probe hands what an engine tells to the record and the sampler.
type probe struct {
	*relay
	sampler *sample.Sampler
	gpus    *gpu.Monitor
}

// Attach samples a source, and with a process what it holds of GPUs.
func (p probe) Attach(s sample.Source) (detach func()) {
	all := []func(){p.sampler.Attach(s)}
	for _, g := range p.gpus.Beside(s) {
		all = append(all, p.sampler.Attach(g))
	}
	return func() {
		for _, detach := range all {
			detach()
		}
	}
}

// less is what was spent since an earlier reading.
func less(now, before record.Cost) record.Cost {
	return record.Cost{Reads: now.Reads - before.Reads, ReadNS: now.ReadNS - before.ReadNS,
		Waits: now.Waits - before.Waits, WaitNS: now.WaitNS - before.WaitNS}
}
