package browser

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"llmparity/internal/fault"
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
	Groups       []ledgerGroup `json:"groups"`
}

type ledgerTally struct {
	Key   string `json:"key"`
	Bytes int64  `json:"bytes"`
	Count int64  `json:"count"`
}

// ledgerGroup is what is live of one size, made in one stage of the load.
type ledgerGroup struct {
	Stage string `json:"stage"`
	Kind  string `json:"kind"` // buffer, texture, querySet
	Usage int64  `json:"usage"`
	Bytes int64  `json:"bytes"` // of each
	Count int64  `json:"count"`
}

// ledger is the source that reads the page's ledger. The page also pushes what changes with the tokens that it tells
// of.
type ledger struct {
	tab *tab

	mu      sync.Mutex
	layout  *layout // of the model that is loaded; nil: none
	noCache bool    // a reading found the engine at work, and none of the KV cache's buffers
	push    func(record.Sample)
}

var (
	_ sample.Pusher = (*ledger)(nil)
	_ sample.Peaker = (*ledger)(nil)
)

func (l *ledger) Describe() record.Source {
	return record.Source{Role: string(l.tab.isolate.thread), Method: MethodLedger,
		PID: int(l.tab.processes.renderer.Load()), Waits: true,
		Sees: "WebGPU buffers, textures and query sets of the thread that WebLLM runs on by what was asked for: live, highest, created, given back; parted by " +
			"load stage and by sizes that the model's package tells into weights, KV cache, workspaces and the rest; read at phase edges, and " +
			"in few figures with tokens",
		Blind: "what a driver adds, or frees later; staging memory of mapped buffers; canvas and video textures; pipelines; whether the " +
			"memory is in a GPU or in the GPU process"}
}

func (l *ledger) Read(ctx context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	state, err := call[struct {
		Ledger ledgerReading `json:"ledger"`
		Held   int64         `json:"held"`
	}](ctx, l.tab, "({ ledger: llmparityLedger.read(), held: llmparity.held() })")
	if err != nil {
		return l.tab.unread(ctx, err)
	}
	r.End = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Values = state.Ledger.values()
	if l.layout != nil {
		parts := l.layout.attribute(state.Ledger.Groups, state.Held)
		l.noCache = parts.KVReserved == record.Absent
		r.Values = append(r.Values, parts.values()...)
	}
	return nil
}

// ResetPeak makes the phase's peak begin anew.
func (l *ledger) ResetPeak(ctx context.Context) error {
	_, err := call[any](ctx, l.tab, "llmparityLedger.mark()")
	return l.tab.unread(ctx, err)
}

func (l *ledger) Pushes(push func(record.Sample)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push = push
}

// knowLayout makes the ledger part what it counts from now on as p's files tell. Where they don't, its figures stay
// whole.
func (s *session) knowLayout(p Package) {
	m, err := layoutOf(p)
	if err != nil {
		s.probe.Warn(record.Warning{Code: "no-attribution",
			Text: "WebGPU memory is not parted into weights, KV cache and workspaces: " + fault.OneLine(err.Error())})
	}
	s.tab.ledger.loaded(m)
}

// loaded tells what is known of the model whose memory the ledger counts from now on; nil: none is loaded.
func (l *ledger) loaded(m *layout) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.layout, l.noCache = m, false
}

// reported takes what the page sends with tokens, in the order of ledger.js's brief and then the tokens that the KV
// cache holds.
func (l *ledger) reported(brief []float64) {
	l.mu.Lock()
	push, layout := l.push, l.layout
	if l.noCache {
		layout = nil
	}
	l.mu.Unlock()
	if push == nil || len(brief) != 7 {
		return
	}
	s := record.NewSample()
	s.Begin = l.tab.clock.at(brief[0])
	s.End = s.Begin
	for i, name := range []string{"live_bytes", "live_count", "peak_bytes", "created_count", "released_count"} {
		s.Values = append(s.Values, record.Value{Name: name, Value: brief[i+1]})
	}
	if held := int64(brief[6]); layout != nil && held >= 0 {
		s.Values = append(s.Values, record.Value{Name: "kv_used_bytes", Value: float64(layout.kvUsed(held))})
	}
	push(s)
}

// tellHistory hands over what was live over the load that has ended, as the page noted it: times and bytes in turn.
func (l *ledger) tellHistory(ctx context.Context) error {
	history, err := call[[]float64](ctx, l.tab, "llmparityLedger.history()")
	if err != nil {
		return fmt.Errorf("reading the ledger's history: %w", err)
	}
	l.mu.Lock()
	push := l.push
	l.mu.Unlock()
	for i := 0; push != nil && i+1 < len(history); i += 2 {
		s := record.NewSample()
		s.Begin = l.tab.clock.at(history[i])
		s.End = s.Begin
		s.Values = []record.Value{{Name: "live_bytes", Value: history[i+1]}}
		push(s)
	}
	return nil
}

func (r *ledgerReading) values() []record.Value {
	v := values(map[string]int64{
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
