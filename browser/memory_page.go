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
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// Methods of reading what is inside the page, as records name them.
const (
	MethodPerformance = "performance_metrics" // Performance.getMetrics
	MethodHeap        = "heap_usage"          // Runtime.getHeapUsage
	MethodDOM         = "dom_counters"        // Memory.getDOMCounters
	MethodWasm        = "wasm_memory"         // WebAssembly memories, seen where the page makes them
	MethodUserAgent   = "user_agent_memory"   // performance.measureUserAgentSpecificMemory
)

// The rates of what can be read while the page goes on. Performance.getMetrics answers within milliseconds, whatever
// the page does, and takes half a millisecond of CPU time, in the browser and the page most of it: it is read at less
// than the rate of what is read from outside. Runtime.getHeapUsage waits for its task to end.
const (
	performanceEvery = 250 * time.Millisecond
	heapEvery        = time.Second
)

// eagerMeasuring is the browser's feature without which measureUserAgentSpecificMemory waits for a garbage collection
// to happen by itself, for many seconds.
const eagerMeasuring = "ForceEagerMeasureMemory"

// pageSource reads something of the page, or of a worker of its, through the browser's protocol.
type pageSource struct {
	record.Source
	page *Page
	ctx  context.Context // of the target that is asked
	end  func()          // lets go of it; nil: it is the page, which stays
	read func(context.Context) (map[string]float64, error)
}

func (s *pageSource) Describe() record.Source { return s.Source }

func (s *pageSource) Read(ctx context.Context, r *record.Sample) error {
	both, cancel := joined(s.ctx, ctx)
	defer cancel()
	r.Begin = time.Now()
	all, err := s.read(both)
	if err != nil {
		if s.ctx.Err() != nil || errors.Is(err, chromedp.ErrTargetDetached) {
			return sample.ErrGone
		}
		return s.page.unread(ctx, err)
	}
	r.End = time.Now()
	r.Values = Values(all)
	return nil
}

// Close lets go of a worker.
func (s *pageSource) Close() error {
	if s.end != nil {
		s.end()
	}
	return nil
}

// unread is the error of a read: a page that is lost is no fault of the source's.
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

// attachInside samples what is inside the page: after its processes, so that at a phase edge what answers at once is
// read first, and what may force a garbage collection last.
func (p *Page) attachInside(ctx context.Context, probe engine.Probe) error {
	_, err := ask(ctx, p, "asking for performance metrics", performance.Enable, performance.EnableParams{})
	if err != nil {
		return err
	}
	ps := &p.processes
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.ended {
		return errClosed
	}
	for _, s := range slices.Insert(p.inside(), 3, sample.Source(p.ledger)) {
		ps.attached[ofThePage] = append(ps.attached[ofThePage], probe.Attach(s))
	}
	return nil
}

// ofThePage stands for the page's sources where processes have their number.
const ofThePage = 0

// inside are the sources of what is inside the page, but for the ledger.
func (p *Page) inside() (all []sample.Source) {
	for _, s := range []struct {
		method, role string
		every        time.Duration
		sees, blind  string
		read         func(context.Context) (map[string]float64, error)
	}{
		{MethodPerformance, "page", performanceEvery,
			"JavaScript objects of the page's main thread: used and total heap; numbers of DOM objects",
			"array buffers, WebAssembly memory, GPU memory, workers' heaps; garbage that is not collected yet counts",
			performanceMetrics},
		{MethodDOM, "page", 0, "numbers of documents, nodes and event listeners", "their size", domCounters},
		{MethodHeap, "page", heapEvery, heapSees, heapBlind, heapUsage},
		{MethodWasm, string(p.isolate.thread), 0,
			"WebAssembly memories of the thread that " + p.site.Title + " runs on by their size, touched or not",
			"memories of other threads; compiled code", p.wasmMemory},
		{MethodUserAgent, "page", 0, "the page's JavaScript heap and array buffers by type, with its workers'; forced " +
			"to be measured at once, for which the browser may collect garbage",
			"WebAssembly memory that is not shared, GPU memory", userAgentMemory},
	} {
		if s.method != MethodUserAgent || p.chrome.eager { // else it may take many seconds
			all = append(all, p.source(s.method, s.role, s.sees, s.blind, s.every, s.read))
		}
	}
	return all
}

func (p *Page) source(method, role, sees, blind string, every time.Duration,
	read func(context.Context) (map[string]float64, error)) *pageSource {
	return &pageSource{page: p, ctx: p.chrome.ctx, read: read,
		Source: record.Source{Role: role, Method: method, PID: int(p.processes.renderer.Load()),
			Every: every, Waits: true, Sees: sees, Blind: blind}}
}

const (
	heapSees = "JavaScript heap of one isolate, used and total; backing stores of array buffers; objects of the browser's own heap. A read " +
		"waits for the thread's task to end: read_ns is that delay"
	heapBlind = "WebAssembly memory, GPU memory, other isolates; garbage that is not collected yet counts"
)

// Names of Performance.getMetrics that tell of memory, and ours.
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

// wasmMemory asks the script that keeps the ledger.
func (p *Page) wasmMemory(ctx context.Context) (map[string]float64, error) {
	m, err := Call[struct{ Bytes, Count float64 }](ctx, p, "llmparityLedger.wasm()")
	return map[string]float64{"memory_bytes": m.Bytes, "memory_count": m.Count}, err
}

// userAgentMemory asks the page itself; the promise settles when every isolate of its has answered. It is the whole and
// its parts by type; parts of no type are called other.
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

// workers lists the page's dedicated workers: each has an isolate of its own, which the page's figures leave out.
func (p *Page) workers(ctx context.Context) ([]target.ID, error) {
	tctx, cancel := p.within(ctx)
	defer cancel()
	targets, err := chromedp.Targets(tctx)
	if err != nil {
		return nil, fmt.Errorf("asking for workers: %w", p.errorOf(ctx, err))
	}
	var ids []target.ID
	for _, t := range targets {
		if t.Type == "worker" && strings.HasPrefix(t.URL, p.server.base) {
			ids = append(ids, t.TargetID)
		}
	}
	return ids, nil
}

// heapOf is heap for a worker.
func (p *Page) heapOf(worker target.ID) *pageSource {
	var s *pageSource
	s = p.source(MethodHeap, "worker", heapSees, heapBlind, heapEvery, func(ctx context.Context) (
		map[string]float64, error) {
		// The browser does not tell that a worker has ended: a call to it is never answered.
		there, err := p.workers(ctx)
		if err == nil && !slices.Contains(there, worker) {
			err = sample.ErrGone
		}
		if err != nil {
			return nil, err
		}
		// The session must live as long as the source, not as long as its first read.
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
