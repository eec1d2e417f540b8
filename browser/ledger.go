package browser

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// MethodLedger names the page's ledger of WebGPU in records.
const MethodLedger = "webgpu_ledger"

// ledgerReading is what the ledger (assets/page/ledger.js) says.
type ledgerReading struct {
	At           float64       `json:"at"` // page clock
	Bytes        int64         `json:"bytes"`
	Count        int64         `json:"count"`
	Peak         int64         `json:"peak"`      // since the page started
	PhasePeak    int64         `json:"phasePeak"` // since the last phase edge
	BufferBytes  int64         `json:"bufferBytes"`
	Buffers      int64         `json:"buffers"`
	TextureBytes int64         `json:"textureBytes"`
	Textures     int64         `json:"textures"`
	QuerySets    int64         `json:"querySets"`
	Queries      int64         `json:"queries"`
	Created      int64         `json:"created"`
	Destroyed    int64         `json:"destroyed"` // by destroy()
	Dropped      int64         `json:"dropped"`   // by the garbage collector
	Lost         int64         `json:"lost"`      // with their device
	Refused      int64         `json:"refused"`   // asked for and never had
	Uncertain    int64         `json:"uncertain"` // errors that could be about several objects
	Usage        []ledgerTally `json:"usage"`
	Labels       []ledgerTally `json:"labels"`
	Groups       []LedgerGroup `json:"groups"`
}

type ledgerTally struct {
	Key   string `json:"key"`
	Bytes int64  `json:"bytes"`
	Count int64  `json:"count"`
}

// LedgerGroup is what is live of one size, made in one stage of the load.
type LedgerGroup struct {
	Stage string `json:"stage"`
	Kind  string `json:"kind"` // buffer, texture, querySet
	Usage int64  `json:"usage"`
	Bytes int64  `json:"bytes"` // of each
	Count int64  `json:"count"`
}

// Layout parts what the ledger counts, for an engine that knows what it asked for.
type Layout interface {
	// Parts are the figures of a reading, while the KV cache holds so many tokens; less than 0: not known.
	Parts(groups []LedgerGroup, held int64) []record.Value
	// Used is what so many tokens take in the KV cache, where that is known by the last reading.
	Used(held int64) (bytes int64, ok bool)
}

// ledger is the source that reads the page's ledger. The page also pushes what changes with the tokens that it tells
// of.
type ledger struct {
	page *Page

	mu     sync.Mutex
	layout Layout // of the model that is loaded; nil: not known
	push   func(record.Sample)
}

var (
	_ sample.Pusher = (*ledger)(nil)
	_ sample.Peaker = (*ledger)(nil)
)

func (l *ledger) Describe() record.Source {
	return record.Source{Role: string(l.page.isolate.thread), Method: MethodLedger,
		PID: int(l.page.processes.renderer.Load()), Waits: true,
		Sees: "WebGPU buffers, textures and query sets of the thread that " + l.page.site.Title + " runs on by what was asked for: live, highest, created, given back; parted by " +
			"load stage and by sizes that the model's package tells into weights, KV cache, workspaces and the rest; read at phase edges, and " +
			"in few figures with tokens",
		Blind: "what a driver adds, or frees later; staging memory of mapped buffers; canvas and video textures; pipelines; whether the " +
			"memory is in a GPU or in the GPU process"}
}

func (l *ledger) Read(ctx context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	state, err := Call[struct {
		Ledger ledgerReading `json:"ledger"`
		Held   int64         `json:"held"`
	}](ctx, l.page, "({ ledger: llmparityLedger.read(), held: llmparity.held() })")
	if err != nil {
		return l.page.unread(ctx, err)
	}
	r.End = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Values = state.Ledger.values()
	if l.layout != nil {
		r.Values = append(r.Values, l.layout.Parts(state.Ledger.Groups, state.Held)...)
	}
	return nil
}

// ResetPeak makes the phase's peak begin anew.
func (l *ledger) ResetPeak(ctx context.Context) error {
	_, err := Call[any](ctx, l.page, "llmparityLedger.mark()")
	return l.page.unread(ctx, err)
}

func (l *ledger) Pushes(push func(record.Sample)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push = push
}

// Parted has the ledger part what it counts from now on; nil: its figures stay whole.
func (p *Page) Parted(by Layout) {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	p.ledger.layout = by
}

// reported takes what the page sends with tokens, in the order of ledger.js's brief and then the tokens that the KV
// cache holds.
func (l *ledger) reported(brief []float64) {
	l.mu.Lock()
	push, layout := l.push, l.layout
	l.mu.Unlock()
	if push == nil || len(brief) != 7 {
		return
	}
	s := record.NewSample()
	s.Begin = l.page.At(brief[0])
	s.End = s.Begin
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

// Loaded hands over what was live over the load that has ended, as the page noted it: times and bytes in turn.
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
		s := record.NewSample()
		s.Begin = l.page.At(history[i])
		s.End = s.Begin
		s.Values = []record.Value{{Name: "live_bytes", Value: history[i+1]}}
		push(s)
	}
	return nil
}

func (r *ledgerReading) values() []record.Value {
	v := Values(map[string]int64{
		"live_bytes": r.Bytes, "live_count": r.Count, "page_peak_bytes": r.Peak, "phase_peak_bytes": r.PhasePeak,
		"buffer_bytes": r.BufferBytes, "buffer_count": r.Buffers, "texture_bytes": r.TextureBytes,
		"texture_count":   r.Textures,
		"query_set_count": r.QuerySets, "query_count": r.Queries, "created_count": r.Created,
		"released_count": r.Destroyed + r.Dropped + r.Lost, "destroyed_count": r.Destroyed, "dropped_count": r.Dropped,
		"lost_count":    r.Lost,
		"refused_count": r.Refused, "uncertain_count": r.Uncertain,
	})
	for _, t := range r.Usage {
		v = append(v, record.Value{Name: "usage." + t.Key + "_bytes", Value: float64(t.Bytes)},
			record.Value{Name: "usage." + t.Key + "_count", Value: float64(t.Count)})
	}
	for i, t := range r.Labels {
		if i == maxLabels {
			break // the page may call every buffer something else
		}
		v = append(v, record.Value{Name: "label." + strings.TrimSpace(t.Key) + "_bytes", Value: float64(t.Bytes)})
	}
	return v
}

// maxLabels is how many labels a reading tells of.
const maxLabels = 32

// Values are figures in the order of their names.
func Values(all map[string]int64) []record.Value {
	var out []record.Value
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, record.Value{Name: name, Value: float64(all[name])})
	}
	return out
}
