package browser

import (
	"context"
	"fmt"
	"sync"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// MethodLedger is the method of the page's WebGPU ledger in records.
const MethodLedger = "webgpu_ledger"

// ledgerReading is a reading of the ledger (assets/page/ledger.js).
type ledgerReading struct {
	Figures map[string]int64 `json:"figures"`
	Groups  []LedgerGroup    `json:"groups"`
}

// LedgerGroup is the set of live objects of one kind and size, created in one stage of the load.
type LedgerGroup struct {
	Stage string `json:"stage"`
	Kind  string `json:"kind"` // buffer, texture, querySet
	Usage int64  `json:"usage"`
	Bytes int64  `json:"bytes"` // of each
	Count int64  `json:"count"`
}

// Layout splits the ledger into components. The engine implements it, because it knows what it allocated.
type Layout interface {
	// Parts returns the components of a reading while the KV cache has held tokens; negative: unknown.
	Parts(groups []LedgerGroup, held int64) []record.Value
	// Used returns the bytes of that many tokens in the KV cache, if known since the last reading.
	Used(held int64) (bytes int64, ok bool)
}

// ledger is the source for the page's ledger. The page also pushes readings together with tokens.
type ledger struct {
	page *Page

	mu     sync.Mutex
	layout Layout // of the loaded model; nil: unknown
	push   func(record.Sample)
}

var (
	_ sample.Pusher = (*ledger)(nil)
	_ sample.Peaker = (*ledger)(nil)
)

func (l *ledger) Describe() record.Source {
	return record.Source{Role: string(l.page.thread), Method: MethodLedger,
		PID: l.page.tab.Renderer(), Waits: true,
		Sees: "WebGPU buffers, textures and query sets of the thread of " + l.page.site.Title + ", by requested size: live, peak, created, released; split by " +
			"load stage, and by sizes in the model's package, into weights, KV cache, workspaces and the rest; read at phase edges, and " +
			"a few figures with tokens",
		Blind: "what a driver adds or frees later; staging memory of mapped buffers; canvas and video textures; pipelines; whether " +
			"memory is in a GPU or in the GPU process"}
}

func (l *ledger) Read(ctx context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	state, err := Call[struct {
		Ledger ledgerReading `json:"ledger"`
		Held   int64         `json:"held"`
	}](ctx, l.page, "llmparity.reading()")
	if err != nil {
		return l.page.unread(ctx, err)
	}
	r.End = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Values = sample.Values(state.Ledger.Figures)
	if l.layout != nil {
		r.Values = append(r.Values, l.layout.Parts(state.Ledger.Groups, state.Held)...)
	}
	return nil
}

// ResetPeak restarts the peak for a phase.
func (l *ledger) ResetPeak(ctx context.Context) error {
	_, err := Call[any](ctx, l.page, "llmparityLedger.mark()")
	return l.page.unread(ctx, err)
}

func (l *ledger) Pushes(push func(record.Sample)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push = push
}

// Parted sets how the ledger is split from now on; nil: not at all.
func (p *Page) Parted(by Layout) {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	p.ledger.layout = by
}

// reported processes what the page pushes with tokens: the values of ledger.js's brief, then the number of tokens in
// the KV cache.
func (l *ledger) reported(brief []float64) {
	l.mu.Lock()
	push, layout := l.push, l.layout
	l.mu.Unlock()
	if push == nil || len(brief) != 7 {
		return
	}
	s := l.at(brief[0])
	for i, name := range []string{"live_bytes", "live_count", "peak_bytes", "created_count", "released_count"} {
		s.Values = append(s.Values, record.Value{Name: name, Value: brief[i+1]})
	}
	if held := int64(brief[6]); layout != nil && held >= 0 {
		if bytes, ok := layout.Used(held); ok {
			s.Values = append(s.Values, record.Value{Name: "kv_used_bytes", Value: float64(bytes)})
		}
	}
	push(s)
}

// at returns a sample at a time of the page's clock.
func (l *ledger) at(ms float64) record.Sample {
	s := record.NewSample()
	s.Begin = l.page.At(ms)
	s.End = s.Begin
	return s
}

// Loaded pushes the ledger's history of the load: times and live bytes in turn.
func (p *Page) Loaded(ctx context.Context) error {
	history, err := Call[[]float64](ctx, p, "llmparityLedger.history()")
	if err != nil {
		return fmt.Errorf("reading the ledger's history: %w", err)
	}
	l := p.ledger
	l.mu.Lock()
	push := l.push
	l.mu.Unlock()
	for i := 0; push != nil && i+1 < len(history); i += 2 {
		s := l.at(history[i])
		s.Values = []record.Value{{Name: "live_bytes", Value: history[i+1]}}
		push(s)
	}
	return nil
}
