package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// Methods for what is inside the page, as in records.
const (
	MethodPerformance = "performance_metrics" // Performance.getMetrics
	MethodHeap        = "heap_usage"          // Runtime.getHeapUsage
	MethodDOM         = "dom_counters"        // Memory.getDOMCounters
	MethodWasm        = "wasm_memory"         // WebAssembly memories, seen where the page makes them
	MethodUserAgent   = "user_agent_memory"   // performance.measureUserAgentSpecificMemory
)

// Sampling rates inside a busy page. Performance.getMetrics always answers within milliseconds and takes half a
// millisecond of CPU time, so it is read less often than outside figures. Runtime.getHeapUsage waits for the page's
// task to end.
const (
	performanceEvery = 250 * time.Millisecond
	heapEvery        = time.Second
)

// pageSource reads figures of the page or one of its workers through DevTools.
type pageSource struct {
	sample.Func
	ctx context.Context // of the target
	end func()          // detaches from a worker
}

// Close detaches from a worker.
func (s *pageSource) Close() error {
	s.end()
	return nil
}

// unread returns the error of a read. If the page is lost, the source is gone.
func (p *Page) unread(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case p.lost() != nil:
		return fmt.Errorf("%w: %w", sample.ErrGone, p.lost())
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// attachInside samples the inside of the page. It comes after the processes, so that at a phase edge fast sources are
// read first, and what may force a garbage collection last.
func (p *Page) attachInside(ctx context.Context, probe engine.Probe) error {
	_, err := ask(ctx, p, "asking for performance metrics", performance.Enable, performance.EnableParams{})
	if err != nil {
		return err
	}
	return p.attach(ofThePage, probe, p.inside())
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
		return errClosed
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

// inside returns the sources inside the page.
func (p *Page) inside() []sample.Source {
	all := []sample.Source{
		p.source(MethodPerformance, "page",
			"JavaScript heap of the page's main thread, used and total; counts of DOM objects",
			"array buffers, WebAssembly memory, GPU memory, workers' heaps; uncollected garbage is included",
			performanceEvery, performanceMetrics),
		p.source(MethodDOM, "page", "counts of documents, nodes and event listeners", "their size", 0, domCounters),
		p.source(MethodHeap, "page", heapSees, heapBlind, heapEvery, heapUsage),
		p.source(MethodWasm, string(p.isolate.thread),
			"WebAssembly memories of the thread of "+p.site.Title+" by size, touched or not",
			"memories of other threads; compiled code", 0, p.wasmMemory),
	}
	if !p.site.Elsewhere {
		all = append(all, p.ledger)
	}
	if p.chrome.eager { // otherwise it may take many seconds
		all = append(all, p.source(MethodUserAgent, "page", "JavaScript heap and array buffers of the page and its "+
			"workers, by type; measured at once, for which the browser may collect garbage",
			"WebAssembly memory that is not shared, GPU memory", 0, userAgentMemory))
	}
	return all
}

func (p *Page) source(method, role, sees, blind string, every time.Duration,
	read func(context.Context) (map[string]float64, error)) *pageSource {
	s := &pageSource{ctx: p.chrome.ctx, end: func() {}}
	s.Source = record.Source{Role: role, Method: method, PID: int(p.processes.renderer.Load()), Every: every,
		Waits: true, Sees: sees, Blind: blind}
	s.Values = func(ctx context.Context) (map[string]float64, error) {
		both, cancel := engine.Within(s.ctx, ctx)
		defer cancel()
		all, err := read(both)
		if err != nil && (s.ctx.Err() != nil || errors.Is(err, chromedp.ErrTargetDetached)) {
			return nil, sample.ErrGone
		}
		return all, p.unread(ctx, err)
	}
	return s
}

const (
	heapSees = "JavaScript heap of one isolate, used and total; backing stores of array buffers; objects of the browser's own heap. A read " +
		"waits for the thread's task to end: read_ns includes that delay"
	heapBlind = "WebAssembly memory, GPU memory, other isolates; uncollected garbage is included"
)

// performanceNames maps the memory metrics of Performance.getMetrics to our names.
var performanceNames = map[string]string{
	"JSHeapUsedSize": "js_heap_used_bytes", "JSHeapTotalSize": "js_heap_total_bytes", "Documents": "documents_count",
	"Frames": "frames_count", "Nodes": "nodes_count", "JSEventListeners": "js_event_listeners_count",
	"LayoutObjects": "layout_objects_count",
}

func performanceMetrics(ctx context.Context) (map[string]float64, error) {
	r, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
	all := map[string]float64{}
	for _, m := range r.Metrics {
		if name, ok := performanceNames[m.Name]; ok {
			all[name] = m.Value
		}
	}
	return all, err
}

func domCounters(ctx context.Context) (map[string]float64, error) {
	c, err := chromedp.Call(ctx, memory.GetDOMCounters, cdp.Empty{})
	return map[string]float64{"documents_count": float64(c.Documents), "nodes_count": float64(c.Nodes),
		"js_event_listeners_count": float64(c.JsEventListeners)}, err
}

func heapUsage(ctx context.Context) (map[string]float64, error) {
	h, err := chromedp.Call(ctx, runtime.GetHeapUsage, cdp.Empty{})
	return map[string]float64{"used_bytes": h.UsedSize, "total_bytes": h.TotalSize,
		"embedder_used_bytes": h.EmbedderHeapUsedSize, "backing_storage_bytes": h.BackingStorageSize}, err
}

// wasmMemory asks the ledger's script.
func (p *Page) wasmMemory(ctx context.Context) (map[string]float64, error) {
	m, err := Call[struct{ Bytes, Count, Shared, Threads float64 }](ctx, p, "llmparityLedger.wasm()")
	all := map[string]float64{"memory_bytes": m.Bytes, "memory_count": m.Count}
	if m.Threads > 0 { // no other engine's memory is shared
		all["shared_bytes"], all["threads_count"] = m.Shared, m.Threads
	}
	return all, err
}

// userAgentMemory returns the total and its parts by type; parts without a type are called other. The promise settles
// when every isolate of the page has answered.
func userAgentMemory(ctx context.Context) (map[string]float64, error) {
	const expression = `globalThis.crossOriginIsolated ? performance.measureUserAgentSpecificMemory() : null`
	m, err := chromedp.Run(ctx, chromedp.Evaluate[*struct {
		Bytes     float64 `json:"bytes"`
		Breakdown []struct {
			Bytes float64  `json:"bytes"`
			Types []string `json:"types"`
		} `json:"breakdown"`
	}](expression, chromedp.EvalAwaitPromise))
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, errors.New("the page is not cross-origin isolated")
	}
	all := map[string]float64{"total_bytes": m.Bytes}
	for _, b := range m.Breakdown {
		name := cmp.Or(strings.ToLower(strings.Join(b.Types, "+")), "other")
		all["type."+name+"_bytes"] += b.Bytes
	}
	return all, nil
}

// workers lists the page's dedicated workers. Each has its own isolate, which the page's figures do not include.
func (p *Page) workers(ctx context.Context) ([]target.ID, error) {
	tctx, cancel := p.within(ctx)
	defer cancel()
	targets, err := chromedp.Targets(tctx)
	if err != nil {
		return nil, fmt.Errorf("asking for workers: %w", p.errorOf(ctx, err))
	}
	var ids []target.ID
	for _, t := range targets {
		if t.Type == "worker" && strings.HasPrefix(t.URL, p.server.Base) {
			ids = append(ids, t.TargetID)
		}
	}
	return ids, nil
}

// heapOf is the source for a worker's heap.
func (p *Page) heapOf(worker target.ID) *pageSource {
	var s *pageSource
	s = p.source(MethodHeap, "worker", heapSees, heapBlind, heapEvery, func(ctx context.Context) (
		map[string]float64, error) {
		// The browser does not report that a worker has ended, and a call to it is never answered.
		there, err := p.workers(ctx)
		if err == nil && !slices.Contains(there, worker) {
			err = sample.ErrGone
		}
		if err != nil {
			return nil, err
		}
		// The session must outlive the first read.
		if err := openTarget(ctx, s.ctx); err != nil {
			return nil, err
		}
		return heapUsage(ctx)
	})
	if worker == p.isolate.worker {
		s.ctx = p.isolate.ctx
	} else {
		s.ctx, s.end = chromedp.NewContext(p.chrome.ctx, chromedp.WithTargetID(worker), chromedp.WithDetachOnCancel())
	}
	return s
}
