package run

import (
	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/gpu"
)

// live is a session with its sampler. It belongs to one attempt, or passes from one repetition to the next.
type live struct {
	relay   *relay
	sampler *sample.Sampler
	session engine.Session // nil until it is open
	opener  int            // the attempt that opened it
	of      any            // what shares it, from turn.session
}

// close ends the session. Its last reports still reach the attempt's record.
func (l *live) close() error {
	if l.session == nil {
		return nil
	}
	return l.session.Close()
}

// probe passes what an engine reports to the record and the sampler.
type probe struct {
	*relay
	sampler *sample.Sampler
	gpus    *gpu.Monitor
}

// Attach samples a source, and the GPU memory of its process.
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

// less returns the cost since an earlier reading.
func less(now, before record.Cost) record.Cost {
	return record.Cost{Reads: now.Reads - before.Reads, ReadNS: now.ReadNS - before.ReadNS,
		ReadCPUNS: now.ReadCPUNS - before.ReadCPUNS, Waits: now.Waits - before.Waits,
		WaitNS: now.WaitNS - before.WaitNS}
}
