package browser

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"llmparity/browser/driver"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/record"
)

// processes are the browser's sampled processes.
type processes struct {
	mu       sync.Mutex // because Close can come at any time
	attached map[int][]func()
	workers  map[string]bool // sampled heaps
	ended    bool            // nothing may be attached any more
}

// Attach samples every process of the browser that is not sampled yet. Processes come and go: a killed GPU process is
// replaced, and services start late.
func (p *Page) Attach(ctx context.Context, probe engine.Probe) error {
	roles, err := p.tab.Roles(ctx)
	if err != nil {
		return err
	}
	workers, err := p.tab.Workers(ctx)
	if err != nil {
		return err
	}
	ps := &p.processes
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.ended {
		return driver.ErrClosed
	}
	for _, pid := range slices.Sorted(maps.Keys(roles)) {
		if _, known := ps.attached[pid]; known {
			continue
		}
		sources, err := proc.Sources(pid, roles[pid], !p.tab.Facts().Attached)
		if errors.Is(err, sample.ErrGone) {
			continue
		}
		if err != nil {
			return fmt.Errorf("sampling the %s: %w", roles[pid], err)
		}
		for _, s := range proc.WithCPUTime(sources) {
			ps.attached[pid] = append(ps.attached[pid], probe.Attach(s))
		}
	}
	for _, w := range workers { // last, so that fast sources are read first at a phase edge
		if !ps.workers[w] {
			ps.workers[w] = true
			if heap := p.tab.Heap(w); heap != nil {
				ps.attached[ofThePage] = append(ps.attached[ofThePage], probe.Attach(heap))
			}
		}
	}
	return nil
}

// AttachNew samples new processes until stop is called. Looking costs a scan of /proc. The browser is only asked if a
// process is unknown for the second time, because a process that was just forked does not show yet what it will be.
func (p *Page) AttachNew(outer context.Context, probe engine.Probe, every time.Duration) (stop func()) {
	var seen []int
	look := func(ctx context.Context) bool {
		p.processes.mu.Lock()
		unknown := slices.DeleteFunc(p.tab.Members(), func(pid int) bool {
			_, known := p.processes.attached[pid]
			return known
		})
		p.processes.mu.Unlock()
		if slices.ContainsFunc(unknown, func(pid int) bool { return slices.Contains(seen, pid) }) {
			_ = p.Attach(ctx, probe) // retried soon; at the end of the load errors are returned
		}
		seen = unknown
		return false
	}
	end := repeat(outer, every, look)
	return func() {
		end()
		if outer.Err() == nil && p.lost() == nil {
			look(outer) // for what is short-lived
		}
	}
}

// detach ends all sampling.
func (ps *processes) detach() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.ended = true
	for _, all := range ps.attached {
		for _, detach := range all {
			detach()
		}
	}
	clear(ps.attached)
}

// MethodWasm is the method, as in records, of WebAssembly memories, seen where the page makes them.
const MethodWasm = "wasm_memory"

// attachInside samples the inside of the page. It comes after the processes, so that at a phase edge fast sources are
// read first, and what may force a garbage collection last.
func (p *Page) attachInside(ctx context.Context, probe engine.Probe) error {
	inside, err := p.tab.Inside(ctx)
	if err != nil {
		return err
	}
	inside = append([]sample.Source{p.wasm()}, inside...)
	if !p.site.Elsewhere {
		inside = append([]sample.Source{p.ledger}, inside...)
	}
	return p.attach(ofThePage, probe, inside)
}

// Keys of sources that are no process's. Processes have their pid.
const (
	ofThePage  = 0
	ofTheModel = -1 // attached by the load, until the unload
)

// attach samples sources until the page is closed, or until detach.
func (p *Page) attach(key int, probe engine.Probe, sources []sample.Source) error {
	ps := &p.processes
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.ended {
		return driver.ErrClosed
	}
	for _, s := range sources {
		ps.attached[key] = append(ps.attached[key], probe.Attach(s))
	}
	return nil
}

// detach ends the sampling of sources that attach began.
func (p *Page) detach(key int) {
	p.processes.mu.Lock()
	defer p.processes.mu.Unlock()
	for _, end := range p.processes.attached[key] {
		end()
	}
	delete(p.processes.attached, key)
}

// wasm is the source of WebAssembly memories, which the ledger's script knows.
func (p *Page) wasm() sample.Source {
	about := record.Source{Role: string(p.thread), Method: MethodWasm, PID: p.tab.Renderer(), Waits: true,
		Sees:  "WebAssembly memories of the thread of " + p.site.Title + " by size, touched or not",
		Blind: "memories of other threads; compiled code"}
	return &sample.Func{Source: about, Values: func(ctx context.Context) (map[string]float64, error) {
		m, err := Call[struct{ Bytes, Count, Shared, Threads float64 }](ctx, p, "llmparityLedger.wasm()")
		all := map[string]float64{"memory_bytes": m.Bytes, "memory_count": m.Count}
		if m.Threads > 0 { // no other engine's memory is shared
			all["shared_bytes"], all["threads_count"] = m.Shared, m.Threads
		}
		return all, p.unread(ctx, err)
	}}
}

func (p *Page) unread(ctx context.Context, err error) error { return driver.Unread(ctx, p.tab, err) }
