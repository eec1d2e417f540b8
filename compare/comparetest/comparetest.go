// Package comparetest writes made-up records for the tests of compare and reports, through the same writer and reader
// as real ones. Nothing in them was measured; the same description always gives the same record.
package comparetest

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Start is the zero of every made-up run.
var Start = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

// Process is one process of an engine, sizes in MiB.
type Process struct {
	Role           string
	Before, Loaded float64 // before and after the load
	Shared         float64 // what other processes share of it
}

// Engine describes an engine's launches.
type Engine struct {
	Cell record.Cell
	Info record.EngineInfo
	// Introduction is what the engine says of itself before it has a model; nil: nothing.
	Introduction *record.EngineInfo
	Device       record.Device
	Ran          []ran.Row
	Resident     bool // its processes exist before the load
	Processes    []Process
	Load         time.Duration
	TTFT         time.Duration
	Token        time.Duration // between tokens
	IDs          []int         // what it generates
	PromptIDs    []int
	Text         string
	Reported     func(ttft, decode time.Duration) map[string]float64
	Usage        func(*record.Usage)  // changes what requests came to; nil: nothing
	NoPSS        bool                 // nobody may read it
	Reused       bool                 // repetitions are in one launch, of the first
	Failing      map[int]record.Class // by repetition
	Refused      error                // why it can't run here, so that it is not launched
	Cut          int                  // a repetition that has no end; 0: none
	Warmup       bool                 // a warm-up launch first
	Warnings     []record.Warning     // in every launch
	// Peaks tells whether each process's highest RSS is read at the end of every phase, and Inside is what sources
	// within the engine see; nil: nothing does.
	Peaks  bool
	Inside *Inside
	// Prediction is the cell's prediction, and Risk whether it fits; a refused one has no launch. nil: nobody
	// said.
	Prediction *record.Prediction
	Risk       *record.Risk
	// Scores are what the engine thinks of a text, when all launches have been made; nil: nobody asked it.
	Scores []record.Score
	Scored record.Scoring // what that text is; if it has a window, the scores are those of all windows
	// Checked are the scores of a score check, and Anchored those of the reference implementation; nil: there are none.
	Checked, Anchored []record.Score
	Check             record.ScoreCheck // of both; its anchor is that of Anchored
	// Stop is why the cell was not repeated any more; nil: it was repeated as often as was asked for.
	Stop *record.Stop
	// Meters are read beside the processes.
	Meters []Meter
	// Slots is how many requests of a traffic it takes at once; 0: any number. Each takes as long as it would alone.
	Slots int
	// Stolen is how many seconds of processors' time a hypervisor gave to others during a repetition; nil: nobody told.
	Stolen func(repetition int) float64
	// Vary moves times and sizes from launch to launch by about this share.
	Vary float64
}

// Inside is what a page reports of itself when a phase ends, in bytes. A phase that a map lacks was not read.
type Inside struct {
	Weights, KVReserved           int64
	KVUsed, Workspaces, Remainder map[record.Phase]int64 // of the ledger
	Heap, Buffers, Wasm           map[record.Phase]int64
	Uncertain                     int64
}

// Meter is a source that is read all the time: a GPU, a server's metrics; one whose source has no interval, at phases'
// ends alone.
type Meter struct {
	Source record.Source
	Read   func(p record.Phase, attempt int, since time.Duration) []record.Value // since Start; none: nobody answers
}

// Run writes a run of these engines and reads it back.
func Run(t testing.TB, name string, engines ...Engine) *record.Run {
	t.Helper()
	return Open(t, Write(t, inMemory(t), name, engines...))
}

// inMemory returns a folder in memory where there is one: syncing to a disk takes longer than all else here.
func inMemory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "llmparity")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { check.Err(t, os.RemoveAll(dir)) })
	return dir
}

// Open reads a made-up run, without what depends on when and where it was written.
func Open(t testing.TB, dir string) *record.Run {
	t.Helper()
	run, err := record.Open(dir)
	check.Err(t, err)
	settle(run)
	return run
}

// Write writes a run of these engines into a folder of its own below root, and gives that.
func Write(t testing.TB, root, name string, engines ...Engine) string {
	t.Helper()
	w, err := record.Create(root, record.Meta{Name: name, Started: Start, Tool: record.Tool{Version: "0.1.0",
		SHA256: "5f2c", GoOS: "linux", GoArch: "amd64"}},
		record.Environment{OS: "linux", Kernel: "6.12.0", CPU: "Example CPU 3.0 GHz", Cores: 8, MemoryB: 24 << 30,
			Governor: "performance", Load1: 0.12}, []byte("name: "+name+"\n"))
	check.Err(t, err)
	for _, e := range engines {
		w.Cell(e.Cell)
	}
	g := &generator{w: w, now: Start.Add(2 * time.Second), rand: rand.New(rand.NewPCG(7, 11))}
	for _, e := range engines {
		if e.predict(w) {
			continue // refused
		}
		if e.Warmup {
			g.launch(e, 0)
		}
		if e.Refused != nil {
			w.Refuse(e.Cell, record.SetUp, e.Refused)
			continue
		}
		for n := range e.Cell.Repetitions {
			g.launch(e, n+1)
		}
	}
	for _, e := range engines {
		if e.Stop != nil {
			w.Stop(*e.Stop)
		}
		if e.Scores != nil {
			e.score(w)
		}
		e.check(w)
	}
	check.Err(t, w.Close(record.OK))
	return w.Dir()
}

func (e Engine) score(w *record.Writer) {
	windows := max(1, e.Scored.At().Of)
	for scores := range slices.Chunk(e.Scores, len(e.Scores)/windows) {
		what := e.Scored
		if what.Window != nil {
			at := *what.Window
			at.Number++
			what.Window, e.Scored.Window = &at, &at
		}
		what.Tokens = len(scores)
		r := w.Begin(e.Cell, record.Beginning{Scoring: &what, Load1: 0.2})
		for n, s := range scores {
			s.Position = n
			r.Score(s)
		}
		r.End(record.OK, "", nil, record.Cost{})
	}
}

// predict writes what is known of a cell before its first launch, and tells whether it is refused.
func (e Engine) predict(w *record.Writer) bool {
	if e.Prediction != nil {
		p := *e.Prediction
		p.Cell = e.Cell.ID
		w.Predict(p)
	}
	if e.Risk == nil {
		return false
	}
	r := *e.Risk
	r.Cell = e.Cell.ID
	w.Risk(r)
	return r.Refused
}

// Predict makes a part of a prediction, in MiB.
func Predict(name string, low, best, high float64, dtype string) record.Predicted {
	f := record.Predicted{Name: name, Low: mib(low), Best: mib(best), High: mib(high), DType: dtype,
		Method: "arithmetic", Confidence: "medium"}
	if low == high {
		f.Confidence = "high"
	}
	return f
}

// settle takes out what depends on when and where the test runs: the journal is stamped as it is written.
func settle(run *record.Run) {
	run.Dir = "results/" + run.Meta.Name
	for _, a := range run.Attempts {
		if len(a.Phases) > 0 {
			a.BeginNS, a.EndNS = a.Phases[0].BeginNS, a.Phases[len(a.Phases)-1].EndNS+int64(edge)
		} else {
			a.BeginNS, a.EndNS = 0, 0
		}
	}
}

type generator struct {
	w    *record.Writer
	now  time.Time
	rand *rand.Rand
	open int // the attempt whose launch is reused; 0: none
}

func (g *generator) launch(e Engine, repetition int) {
	r := g.w.Begin(e.Cell, record.Beginning{Repetition: repetition, Warmup: repetition == 0, OpenedBy: g.open,
		Load1: 0.2})
	l := &launch{g: g, e: e, r: r, pace: 1 + e.Vary*g.rand.NormFloat64(), size: 1 + e.Vary/3*g.rand.NormFloat64(),
		quick: 50 * time.Millisecond, slow: 500 * time.Millisecond}
	if e.Introduction != nil {
		r.Event(record.Event{Engine: e.Introduction})
	}
	_, fails := e.Failing[repetition]
	if e.Info.Name != "" && (e.Introduction == nil || !fails) {
		r.Event(record.Event{Engine: &e.Info})
	}
	if e.Device.Class != "" {
		r.Event(record.Event{Device: &e.Device})
	}
	if e.Ran != nil {
		r.Event(record.Event{Ran: e.Ran})
	}
	for _, w := range e.Warnings {
		r.Warn(w)
	}
	l.sources()
	if g.open == 0 {
		l.phase(record.Baseline, time.Second, func(float64) float64 { return 0 })
	}
	if class, ok := e.Failing[repetition]; ok {
		r.End(record.Failed, class, errors.New("the device was lost while loading"), l.cost())
		return
	}
	if g.open == 0 {
		l.phase(record.Load, l.dur(e.Load), func(x float64) float64 { return math.Pow(x, 0.6) })
	}
	if repetition != 0 && repetition == e.Cut {
		return
	}
	if g.open == 0 {
		l.phase(record.Warmup, 400*time.Millisecond, func(float64) float64 { return 1.01 })
	}
	if e.Cell.Traffic != nil {
		l.traffic()
	} else {
		l.measure()
	}
	l.phase(record.Idle, 500*time.Millisecond, func(float64) float64 { return 1.02 })
	switch {
	case !e.Reused || repetition == 0 || repetition == e.Cell.Repetitions:
		l.phase(record.Unload, 300*time.Millisecond, func(x float64) float64 { return 1.02 - 0.7*x })
		g.open = 0
	case g.open == 0:
		g.open = r.ID()
	}
	if e.Stolen != nil {
		r.Stolen(e.Stolen(repetition))
	}
	r.End(record.OK, "", nil, l.cost())
	g.now = g.now.Add(time.Second)
}

type launch struct {
	g          *generator
	e          Engine
	r          *record.Recording
	pace, size float64

	quick, slow time.Duration // between readings of RSS, and of PSS
	statm       []int
	smaps       []int
	page        map[string]int // sources by method
	reads       int
	meters      []int
}

func (l *launch) dur(d time.Duration) time.Duration { return time.Duration(float64(d) * l.pace) }

func (l *launch) sources() {
	for i, p := range l.e.Processes {
		s := record.Source{Role: p.Role, PID: 4000 + i, Start: uint64(90000 + i), Sees: "resident pages", Blind: "swap"}
		s.Method, s.Every = record.MethodStatm, l.quick
		l.statm = append(l.statm, l.r.Source(s))
		s.Method, s.Every = record.MethodSmapsRollup, l.slow
		l.smaps = append(l.smaps, l.r.Source(s))
	}
	for _, m := range l.e.Meters {
		l.meters = append(l.meters, l.r.Source(m.Source))
	}
	l.page = map[string]int{}
	for _, method := range []string{"heap_usage", "webgpu_ledger", "wasm_memory"} {
		if l.e.Inside != nil {
			l.page[method] = l.r.Source(record.Source{Role: "page", Method: method, PID: 4001, Waits: true,
				Sees: "what " + method + " sees", Blind: "what " + method + " can't see"})
		}
	}
}

// inside is the reading of the page at the end of a phase.
func (l *launch) inside(p record.Phase) {
	in := l.e.Inside
	if in == nil {
		return
	}
	push := func(method string, values ...record.Value) {
		s := record.NewSample()
		s.Begin, s.End, s.Values, s.Edge = l.g.now.Add(-2*time.Millisecond), l.g.now.Add(-time.Millisecond), values, p
		l.r.Sample(l.page[method], s)
	}
	put := func(method, name string, of map[record.Phase]int64) {
		if v, ok := of[p]; ok {
			push(method, record.Value{Name: name, Value: float64(v)})
		}
	}
	put("heap_usage", "used_bytes", in.Heap)
	put("heap_usage", "backing_storage_bytes", in.Buffers)
	put("wasm_memory", "memory_bytes", in.Wasm)
	live := int64(0)
	if used, loaded := in.KVUsed[p]; loaded {
		workspaces, remainder := in.Workspaces[p], in.Remainder[p]
		live = in.Weights + in.KVReserved + workspaces + remainder
		push("webgpu_ledger", record.Value{Name: "weights_bytes", Value: float64(in.Weights)},
			record.Value{Name: "kv_reserved_bytes", Value: float64(in.KVReserved)},
			record.Value{Name: "kv_used_bytes", Value: float64(used)}, record.Value{Name: "workspaces_bytes",
				Value: float64(workspaces)},
			record.Value{Name: "unattributed_bytes", Value: float64(remainder)})
	}
	push("webgpu_ledger", record.Value{Name: "live_bytes", Value: float64(live)}, record.Value{Name: "uncertain_count",
		Value: float64(in.Uncertain)})
}

// edge is what the reading at a phase's end takes.
const edge = 10 * time.Millisecond

// phase samples for as long as it takes; level goes from 0 (before the load) to 1 (loaded) over the phase. The reading
// at its end lies behind it, as the runner's does, unless the phase only waits.
func (l *launch) phase(p record.Phase, d time.Duration, level func(float64) float64) {
	begin := l.g.now
	end := begin.Add(d)
	l.g.now = end.Add(edge)
	if p == record.Baseline || p == record.Idle {
		end = l.g.now
	}
	if l.e.Resident || p != record.Baseline {
		for at := time.Duration(0); at < d; at += l.quick {
			l.read(begin.Add(at), level(float64(at)/float64(d)), at%l.slow == 0, "")
		}
		l.read(l.g.now.Add(-time.Millisecond), level(1), true, p)
		l.inside(p)
	}
	for i, m := range l.e.Meters {
		tell := func(s record.Sample) {
			if s.Values = m.Read(p, l.r.ID(), s.End.Sub(Start)); len(s.Values) > 0 {
				l.r.Sample(l.meters[i], s)
			}
		}
		s := record.NewSample()
		if m.Source.Every == 0 {
			s.End, s.Edge = l.g.now.Add(-time.Millisecond), p
			s.Begin = s.End
			tell(s)
			continue
		}
		for s.End = begin; s.End.Before(l.g.now); s.End = s.End.Add(m.Source.Every) {
			s.Begin = s.End.Add(-time.Millisecond)
			tell(s)
		}
	}
	l.r.Phase(p, begin, end)
}

func (l *launch) read(at time.Time, level float64, expensive bool, edge record.Phase) {
	statm, smaps := record.Total{Method: record.MethodStatm, Sample: record.NewSample()},
		record.Total{Method: record.MethodSmapsRollup, Sample: record.NewSample()}
	for i, p := range l.e.Processes {
		rss := p.Before + (p.Loaded-p.Before)*level*l.size + 0.4*l.g.rand.Float64()
		s := record.NewSample()
		s.Begin, s.End = at.Add(-9*time.Microsecond), at
		s.RSS, s.VMS = mib(rss), mib(rss*3)
		l.r.Sample(l.statm[i], s)
		sum(&statm, s)
		l.reads++
		if expensive && !l.e.NoPSS {
			s.Begin = at.Add(-8 * time.Millisecond)
			s.VMS, s.PSS, s.USS, s.Swap = record.Absent, mib(rss-p.Shared/2), mib(rss-p.Shared), 0
			if l.e.Peaks && edge != "" {
				s.Edge, s.HWM = edge, mib(rss+p.Shared/4) // higher than any sample: a spike between two
			}
			l.r.Sample(l.smaps[i], s)
			sum(&smaps, s)
			l.reads++
		}
	}
	l.r.Total(statm)
	if expensive && !l.e.NoPSS {
		l.r.Total(smaps)
	}
}

func sum(t *record.Total, s record.Sample) {
	if t.Processes == 0 {
		t.Sample = s
	} else {
		t.RSS += s.RSS
		t.End = s.End
		if s.PSS != record.Absent {
			t.PSS += s.PSS
			t.USS += s.USS
		}
		if s.VMS != record.Absent {
			t.VMS += s.VMS
		}
	}
	t.Processes++
}

func mib(v float64) int64 { return int64(v * record.MiB) }

func (l *launch) measure() {
	sent := l.g.now.Add(5 * time.Millisecond)
	ttft, step := l.dur(l.e.TTFT), l.dur(l.e.Token)
	at := sent.Add(ttft)
	tokens := []record.Token{}
	for i, id := range l.e.IDs {
		tokens = append(tokens, record.Token{Index: i, ID: id, At: at})
		if i < len(l.e.IDs)-1 {
			at = at.Add(step)
		}
	}
	returned := at.Add(2 * time.Millisecond)
	l.phase(record.Measure, returned.Sub(l.g.now)+5*time.Millisecond, func(x float64) float64 { return 1.01 + 0.04*x })
	u := l.usage(sent, sent.Add(ttft), at)
	if l.e.Reported != nil && len(tokens) > 1 {
		u.Reported = l.e.Reported(ttft, at.Sub(tokens[0].At))
	}
	if l.e.Usage != nil {
		l.e.Usage(&u)
	}
	l.r.Request(record.Slot{}, time.Time{}, record.Measure, u, tokens, returned)
}

// usage is what a request came to.
func (l *launch) usage(sent, first, last time.Time) record.Usage {
	return record.Usage{PromptIDs: l.e.PromptIDs, Text: l.e.Text, Finish: "length", Sent: sent, Spans: []record.Span{
		{Name: record.Prefill, Begin: sent, End: first, How: "sent to first token"},
		{Name: record.Decode, Begin: first, End: last, How: "first to last token"}}}
}

func (l *launch) cost() record.Cost {
	return record.Cost{Reads: l.reads, ReadNS: int64(l.reads) * 60_000, SelfCPUNS: int64(90 * time.Millisecond)}
}

// Tiny is the model of the made-up cells.
func Tiny() record.Model {
	return record.Model{Name: "tiny", SHA256: "9a0c3b5d7e", Format: "gguf", Architecture: "llama", DType: "f32",
		Parameters: 1 << 20, FileB: 4_300_000,
		WeightsB: 4 << 20, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 32, Hidden: 128, Vocab: 512, Context: 256}
}

// IDs makes a sequence of n token ids.
func IDs(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = (i*i*31 + 17*i + 5) % 512
	}
	return out
}

const text = " the river ran on past the mill and the town, and the light was on the water as it had been every evening of " +
	"that year"

func cell(id int, engine string, launches int) record.Cell {
	return record.Cell{ID: id, Engine: engine, Model: Tiny(), PromptID: 1, Prompt: "Once upon a time", MaxTokens: 64,
		Repetitions: launches, Isolation: "launch", PromptCache: "off"}
}

// Browser is WebLLM-like: resident, many processes, a software adapter.
func Browser(launches int) Engine {
	return Engine{
		Cell: cell(1, "webllm", launches),
		Info: record.EngineInfo{Name: "webllm", Title: "WebLLM", Version: "0.2.86", Origin: record.BuiltIn,
			Path: "/usr/bin/chromium", Args: []string{"--headless=new", "--enable-unsafe-webgpu"},
			Parts: map[string]string{"browser": "Chromium 156.0"},
			Library: &record.Library{Maker: record.Llmparity, Usual: "MLC", Kernels: "software",
				Variant: "software kernels, partial sort", SHA256: "77aa01"},
			Policy: map[string]string{"kv_dtype": "f32", "weights_dtype": "f32", "context": "256"}},
		Device: record.Device{Class: record.SoftwareAdapter, Name: "SwiftShader",
			Detail: map[string]string{"vendor": "google", "fallback": "true"}},
		Ran:      []ran.Row{ran.As(ran.Backend, "webgpu", "webgpu", "first generation: 960 WebGPU dispatches")},
		Resident: true,
		Processes: []Process{{"browser", 118, 124, 70}, {"renderer", 96, 310, 60}, {"gpu-process", 88, 420, 64},
			{"utility", 52, 53, 44}},
		Load: 4200 * time.Millisecond, TTFT: 170 * time.Millisecond, Token: 48 * time.Millisecond,
		IDs: IDs(64), PromptIDs: []int{12, 44, 7, 301}, Text: text, Vary: 0.03,
		Reported: func(ttft, decode time.Duration) map[string]float64 {
			return map[string]float64{"decode_tokens_per_s": 63 / decode.Seconds() * 1.004,
				"prefill_tokens_per_s": 4 / ttft.Seconds() * 1.1, "completion_tokens": 63}
		},
	}
}

// Native is llama-server-like: no process before the load, one process, the CPU.
func Native(launches int) Engine {
	return Engine{
		Cell: cell(2, "llamacpp", launches),
		Info: record.EngineInfo{Name: "llama-server", Version: "b11434", Path: "/usr/bin/llama-server",
			SHA256: "0badcafe", Args: []string{"-np", "1", "-t", "1"},
			Policy: map[string]string{"kv_dtype": "f32", "weights_dtype": "f32", "context": "256", "threads": "1"}},
		Device:    record.Device{Class: record.CPU, Name: "Example CPU 3.0 GHz"},
		Ran:       []ran.Row{ran.With(ran.Threads, 1, 1, "llama.cpp's log")},
		Processes: []Process{{"server", 8, 46, 3}},
		Load:      350 * time.Millisecond, TTFT: 9 * time.Millisecond, Token: 1100 * time.Microsecond,
		IDs: IDs(64), PromptIDs: []int{12, 44, 7, 301}, Text: text, Vary: 0.03,
		Reported: func(ttft, decode time.Duration) map[string]float64 {
			return map[string]float64{"predicted_per_second": 64 / decode.Seconds(),
				"prompt_per_second": 4 / ttft.Seconds() * 1.2, "predicted_n": 64}
		},
	}
}

// Served is a server that tells pieces of text, without ids, and stops where a text ends.
func Served(launches int) Engine {
	e := Native(launches)
	e.Cell.ID, e.Cell.Engine, e.Info.Name = 3, "served", "served"
	e.Cell.StopsAtEnd, e.Cell.NoTokenIDs, e.Cell.Pieces = true, true, true
	e.IDs = slices.Repeat([]int{record.NoID}, 20)
	e.Usage = func(u *record.Usage) {
		u.PromptIDs, u.PromptTokens, u.Generated, u.Finish = nil, 4, 41, "stop"
		u.Text = u.Text[:40]
	}
	return e
}

// Measured gives an engine all that there is to measure: peaks of phases, and what is inside where that can be seen.
func Measured(e Engine, in *Inside) Engine {
	e.Peaks, e.Inside = true, in
	return e
}

// Page is what is inside a Browser.
func Page() *Inside {
	phases := func(baseline, load, measure, unload int64) map[record.Phase]int64 {
		return map[record.Phase]int64{record.Baseline: baseline, record.Load: load, record.Warmup: measure,
			record.Measure: measure, record.Idle: measure, record.Unload: unload}
	}
	loaded := func(load, measure int64) map[record.Phase]int64 {
		return map[record.Phase]int64{record.Load: load, record.Warmup: measure, record.Measure: measure,
			record.Idle: measure}
	}
	return &Inside{Weights: 4<<20 + 4096, KVReserved: 544 << 10, KVUsed: loaded(0, 68<<10), Workspaces: loaded(700_001,
		1_100_300),
		Remainder: loaded(64, 4160),
		Heap:      phases(6_914_020, 8_948_068, 9_931_520, 8_327_632),
		Buffers:   phases(6_845_225, 10_344_204, 6_859_937, 6_847_946),
		Wasm:      phases(0, 51_445_760, 51_445_760, 17_891_328)}
}

// Logged gives every launch what an engine's log tells at the ends of load and measurement.
func Logged(run *record.Run, values map[string]float64) *record.Run {
	for _, a := range run.Attempts {
		const id = 77
		a.Sources[id] = record.Source{Role: "server", Method: "engine_log", Sees: "its own word",
			Blind: "what was touched"}
		for _, p := range []record.Phase{record.Load, record.Measure} {
			span, _ := a.Phase(p)
			for name, v := range values {
				a.Metrics = append(a.Metrics,
					record.MetricRow{Source: id, NS: span.EndNS, Edge: p, Name: name, Value: v})
			}
		}
	}
	return run
}

// Example writes a run of six launches of llama.cpp, for examples, which have no test to end.
func Example() (dir string, remove func()) {
	root, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	return Write(new(testing.B), root, "example", Native(6)), func() { _ = os.RemoveAll(root) }
}
