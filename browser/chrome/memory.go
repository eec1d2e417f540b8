package chrome

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"llmparity/browser/driver"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// Methods for what is inside the page, as in records.
const (
	MethodPerformance = "performance_metrics" // Performance.getMetrics
	MethodHeap        = "heap_usage"          // Runtime.getHeapUsage
	MethodDOM         = "dom_counters"        // Memory.getDOMCounters
	MethodUserAgent   = "user_agent_memory"   // performance.measureUserAgentSpecificMemory
)

// Sampling rates inside a busy page. Performance.getMetrics always answers within milliseconds and takes half a
// millisecond of CPU time, so it is read less often than outside figures. Runtime.getHeapUsage waits for the page's
// task to end.
const (
	performanceEvery = 250 * time.Millisecond
	heapEvery        = time.Second
)

// Source reads figures of the page or one of its workers through DevTools.
type Source struct {
	sample.Func
	Ctx context.Context // of the target
	end func()          // detaches from a worker
}

// Close detaches from a worker.
func (s *Source) Close() error {
	s.end()
	return nil
}

// unread returns the error of a read. If the page is lost, the source is gone.
func (t *Tab) unread(ctx context.Context, err error) error { return driver.Unread(ctx, t, err) }

// Inside returns sources for the inside of the page, what may force a garbage collection last.
func (t *Tab) Inside(ctx context.Context) ([]sample.Source, error) {
	_, err := ask(ctx, t, "asking for performance metrics", performance.Enable, performance.EnableParams{})
	if err != nil {
		return nil, err
	}
	all := []sample.Source{
		t.source(MethodPerformance, "page",
			"JavaScript heap of the page's main thread, used and total; counts of DOM objects",
			"array buffers, WebAssembly memory, GPU memory, workers' heaps; uncollected garbage is included",
			performanceEvery, performanceMetrics),
		t.source(MethodDOM, "page", "counts of documents, nodes and event listeners", "their size", 0, domCounters),
		t.source(MethodHeap, "page", heapSees, heapBlind, heapEvery, heapUsage),
	}
	if t.eager { // otherwise it may take many seconds
		all = append(all, t.source(MethodUserAgent, "page", "JavaScript heap and array buffers of the page and its "+
			"workers, by type; measured at once, for which the browser may collect garbage",
			"WebAssembly memory that is not shared, GPU memory", 0, userAgentMemory))
	}
	return all, nil
}

func (t *Tab) source(method, role, sees, blind string, every time.Duration,
	read func(context.Context) (map[string]float64, error)) *Source {
	s := &Source{Ctx: t.Ctx, end: func() {}}
	s.Source = record.Source{Role: role, Method: method, PID: t.Renderer(), Every: every,
		Waits: true, Sees: sees, Blind: blind}
	s.Values = func(ctx context.Context) (map[string]float64, error) {
		both, cancel := engine.Within(s.Ctx, ctx)
		defer cancel()
		all, err := read(both)
		if err != nil && (s.Ctx.Err() != nil || errors.Is(err, chromedp.ErrTargetDetached)) {
			return nil, sample.ErrGone
		}
		return all, t.unread(ctx, err)
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

// blobs is the name of workers of interest among those that engines make of texts. Threads of WebAssembly have none:
// while they wait for one another, nothing can be asked of them.
const blobs = "llmparity"

// ofText reports whether a worker is such a one. Its address has the page's origin alone.
func (t *Tab) ofText(worker *target.Info) bool {
	page, _ := url.Parse(t.base) // ours
	return worker.Title == blobs && strings.HasPrefix(worker.URL, "blob:"+page.Scheme+"://"+page.Host+"/")
}

// Workers lists the page's dedicated workers. Each has its own isolate, which the page's figures do not include.
func (t *Tab) Workers(ctx context.Context) ([]string, error) {
	tctx, cancel := t.within(ctx)
	defer cancel()
	targets, err := chromedp.Targets(tctx)
	if err != nil {
		return nil, fmt.Errorf("asking for workers: %w", t.errorOf(ctx, err))
	}
	var ids []string
	for _, one := range targets {
		if one.Type == "worker" && (strings.HasPrefix(one.URL, t.base) || t.ofText(one)) {
			ids = append(ids, string(one.TargetID))
		}
	}
	return ids, nil
}

// Heap is the source for a worker's heap.
func (t *Tab) Heap(worker string) sample.Source {
	var s *Source
	s = t.source(MethodHeap, "worker", heapSees, heapBlind, heapEvery, func(ctx context.Context) (
		map[string]float64, error) {
		// The browser does not report that a worker has ended, and a call to it is never answered.
		there, err := t.Workers(ctx)
		if err == nil && !slices.Contains(there, worker) {
			err = sample.ErrGone
		}
		if err != nil {
			return nil, err
		}
		// The session must outlive the first read.
		if err := openTarget(ctx, s.Ctx); err != nil {
			return nil, err
		}
		return heapUsage(ctx)
	})
	if worker == string(t.isolate.worker) {
		s.Ctx = t.isolate.ctx
	} else {
		s.Ctx, s.end = t.into(target.ID(worker))
	}
	return s
}
