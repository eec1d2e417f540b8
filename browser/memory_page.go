package browser

import (
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
	read func(context.Context) ([]record.Value, error)
}

func (s *pageSource) Describe() record.Source { return s.Source }

func (s *pageSource) Read(ctx context.Context, r *record.Sample) (err error) {
	both, cancel := joined(s.ctx, ctx)
	defer cancel()
	r.Begin = time.Now()
	if r.Values, err = s.read(both); err != nil {
		if s.ctx.Err() != nil {
			return sample.ErrGone
		}
		return s.page.unread(ctx, err)
	}
	r.End = time.Now()
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
	tctx, cancel := p.within(ctx)
	defer cancel()
	if _, err := chromedp.Call(tctx, performance.Enable, performance.EnableParams{}); err != nil {
		return fmt.Errorf("asking for performance metrics: %w", p.errorOf(ctx, err))
	}
	ps := &p.processes
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.ended {
		return errClosed
	}
	sources := []sample.Source{p.performance(), p.dom(), p.heap(), p.ledger, p.wasm()}
	if p.chrome.eager { // else it may take many seconds
		sources = append(sources, p.userAgent())
	}
	for _, s := range sources {
		ps.attached[ofThePage] = append(ps.attached[ofThePage], probe.Attach(s))
	}
	return nil
}

// ofThePage stands for the page's sources where processes have their number.
const ofThePage = 0

func (p *Page) source(method, role, sees, blind string, every time.Duration) *pageSource {
	return &pageSource{page: p, ctx: p.chrome.ctx,
		Source: record.Source{Role: role, Method: method, PID: int(p.processes.renderer.Load()),
			Every: every, Waits: true, Sees: sees, Blind: blind}}
}

// Names of Performance.getMetrics that tell of memory, and ours.
var performanceNames = map[string]string{
	"JSHeapUsedSize": "js_heap_used_bytes", "JSHeapTotalSize": "js_heap_total_bytes", "Documents": "documents_count",
	"Frames": "frames_count", "Nodes": "nodes_count", "JSEventListeners": "js_event_listeners_count",
	"LayoutObjects": "layout_objects_count",
}

func (p *Page) performance() *pageSource {
	s := p.source(MethodPerformance, "page",
		"JavaScript objects of the page's main thread: used and total heap; numbers of DOM objects",
		"array buffers, WebAssembly memory, GPU memory, workers' heaps; garbage that is not collected yet counts",
		performanceEvery)
	s.read = func(ctx context.Context) ([]record.Value, error) {
		r, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			return nil, err
		}
		var v []record.Value
		for _, m := range r.Metrics {
			if name, ok := performanceNames[m.Name]; ok {
				v = append(v, record.Value{Name: name, Value: m.Value})
			}
		}
		return v, nil
	}
	return s
}

func (p *Page) dom() *pageSource {
	s := p.source(MethodDOM, "page", "numbers of documents, nodes and event listeners", "their size", 0)
	s.read = func(ctx context.Context) ([]record.Value, error) {
		c, err := chromedp.Call(ctx, memory.GetDOMCounters, cdp.Empty{})
		return []record.Value{{Name: "documents_count", Value: float64(c.Documents)},
			{Name: "nodes_count", Value: float64(c.Nodes)},
			{Name: "js_event_listeners_count", Value: float64(c.JsEventListeners)}}, err
	}
	return s
}

const (
	heapSees = "JavaScript heap of one isolate, used and total; backing stores of array buffers; objects of the browser's own heap. A read " +
		"waits for the thread's task to end: read_ns is that delay"
	heapBlind = "WebAssembly memory, GPU memory, other isolates; garbage that is not collected yet counts"
)

func (p *Page) heap() *pageSource {
	s := p.source(MethodHeap, "page", heapSees, heapBlind, heapEvery)
	s.read = heapUsage
	return s
}

func heapUsage(ctx context.Context) ([]record.Value, error) {
	h, err := chromedp.Call(ctx, runtime.GetHeapUsage, cdp.Empty{})
	return []record.Value{{Name: "used_bytes", Value: h.UsedSize}, {Name: "total_bytes", Value: h.TotalSize},
		{Name: "embedder_used_bytes", Value: h.EmbedderHeapUsedSize},
		{Name: "backing_storage_bytes", Value: h.BackingStorageSize}}, err
}

// wasm asks the script that keeps the ledger.
func (p *Page) wasm() *pageSource {
	s := p.source(MethodWasm, string(p.isolate.thread),
		"WebAssembly memories of the thread that "+p.site.Title+" runs on by their size, touched or not",
		"memories of other threads; compiled code", 0)
	s.read = func(ctx context.Context) ([]record.Value, error) {
		m, err := Call[struct{ Bytes, Count int64 }](ctx, p, "llmparityLedger.wasm()")
		return Values(map[string]int64{"memory_bytes": m.Bytes, "memory_count": m.Count}), err
	}
	return s
}

// userAgent asks the page itself; the promise settles when every isolate of its has answered.
func (p *Page) userAgent() *pageSource {
	s := p.source(MethodUserAgent, "page",
		"the page's JavaScript heap and array buffers by type, with its workers'; forced to be measured at "+
			"once, for which the browser may collect garbage", "WebAssembly memory that is not shared, GPU memory", 0)
	s.read = func(ctx context.Context) ([]record.Value, error) {
		const expression = `globalThis.crossOriginIsolated ? performance.measureUserAgentSpecificMemory() : null`
		m, err := chromedp.Run(ctx, chromedp.Evaluate[*userAgentMemory](expression, chromedp.EvalAwaitPromise))
		if err != nil {
			return nil, err
		}
		if m == nil {
			return nil, errors.New("the page is not cross-origin isolated")
		}
		return m.values(), nil
	}
	return s
}

type userAgentMemory struct {
	Bytes     int64 `json:"bytes"`
	Breakdown []struct {
		Bytes int64    `json:"bytes"`
		Types []string `json:"types"`
	} `json:"breakdown"`
}

// values are the whole and its parts by type; parts of no type are called other.
func (m *userAgentMemory) values() []record.Value {
	all := map[string]int64{"total_bytes": m.Bytes}
	for _, b := range m.Breakdown {
		name := "other"
		if len(b.Types) > 0 {
			name = strings.ToLower(strings.Join(b.Types, "+"))
		}
		all["type."+name+"_bytes"] += b.Bytes
	}
	return Values(all)
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
	s := p.source(MethodHeap, "worker", heapSees, heapBlind, heapEvery)
	if worker == p.isolate.worker {
		s.ctx = p.isolate.ctx
	} else {
		s.ctx, s.end = chromedp.NewContext(p.chrome.ctx, chromedp.WithTargetID(worker), chromedp.WithDetachOnCancel())
	}
	s.read = func(ctx context.Context) ([]record.Value, error) {
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
	}
	return s
}
