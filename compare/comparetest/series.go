package comparetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Series describes the launches of one run, in memory: what the reader makes of a folder, without the folder.
type Series struct {
	Launches, Cells int
	CV              float64            // of every figure over launches, about half of its square between launches
	Memory          float64            // of sizes, where it is another one; 0: CV
	CPU             float64            // CV of the CPU time per token, which varies by itself; 0: it is not read
	Shift           map[string]float64 // factors by figure, of decode by its time; absent: 1
	Bell            bool               // they vary by a bell curve, and not with a long tail
}

// Factor is by how much a figure is shifted.
func (s Series) Factor(figure string) float64 {
	if f, ok := s.Shift[figure]; ok {
		return f
	}
	return 1
}

// vary is a factor around 1, with a long tail to the right as times have when something came in between.
func (s Series) vary(r *rand.Rand, cv float64) float64 {
	if s.Bell {
		return 1 + cv*r.NormFloat64()
	}
	const shape = 3
	sum := 0.0
	for range shape {
		sum += r.ExpFloat64()
	}
	return 1 + cv*(sum-shape)/math.Sqrt(shape)
}

// Run makes the record of that. Figures of a launch have its luck in common, and some of their own on top.
func (s Series) Run(r *rand.Rand, name string) *record.Run {
	out := &record.Run{Dir: "results/" + name, Meta: record.Meta{Name: name, Started: Start},
		Status:      record.OK,
		Environment: record.Environment{OS: "linux", Kernel: "6.12", CPU: "Example", Cores: 8, MemoryB: 1 << 34}}
	zero := int64(0)
	for c := range s.Cells {
		spec := record.Cell{ID: c + 1, Engine: "engine", Model: Tiny(), PromptID: c + 1,
			Prompt: fmt.Sprint("prompt ", c+1), MaxTokens: 16,
			Repetitions: s.Launches, Isolation: record.OfLaunch, PromptCache: record.CacheOff}
		out.Cells = append(out.Cells, spec)
	}
	each, size := s.CV/math.Sqrt2, s.Memory/math.Sqrt2
	for n := range s.Launches {
		for c, spec := range out.Cells {
			luck, large := s.vary(r, each), 1.0
			if s.Memory > 0 {
				large = s.vary(r, size)
			}
			of := func(base float64, name string) float64 {
				if name == figure.TokenCPU {
					return base * float64(c+1) * s.vary(r, s.CPU) * s.Factor(name)
				}
				if s.Memory > 0 && (name == figure.PeakPSS || name == figure.Baseline) {
					return base * float64(c+1) * large * s.vary(r, size) * s.Factor(name)
				}
				return base * float64(c+1) * luck * s.vary(r, each) * s.Factor(name)
			}
			a := &record.Attempt{ID: n*s.Cells + c + 1, Status: record.OK,
				Beginning: record.Beginning{Cell: spec.ID, Repetition: n + 1}, BeginNS: zero}
			s.fill(a, of)
			out.Attempts = append(out.Attempts, a)
			zero = a.EndNS + int64(time.Second)
		}
	}
	return out
}

func (s Series) fill(a *record.Attempt, of func(float64, string) float64) {
	const ms = 1e6
	at := a.BeginNS
	phase := func(p record.Phase, length float64, pss ...float64) {
		for i, v := range pss {
			a.Totals = append(a.Totals, record.TotalRow{Method: record.MethodSmapsRollup, Processes: 1,
				NS: at + int64(i) + 1, RSS: v + 2, VMS: v + 90, PSS: v,
				USS: v - 1, Swap: math.NaN()})
		}
		a.Phases = append(a.Phases, record.PhaseSpan{Name: p, BeginNS: at, EndNS: at + int64(length)})
		at += int64(length) + 1
	}
	base := of(120, figure.Baseline)
	phase(record.Baseline, 100*ms, base)
	phase(record.Load, of(350*ms, figure.LoadTime), base+10)
	phase(record.Warmup, 50*ms, base+20)
	sent := at
	first := sent + int64(of(40*ms, figure.TTFT))
	req := &record.Request{ID: 1, Phase: record.Measure, SentNS: sent, PromptIDs: []int{1, 2, 3, 4}, Text: "words",
		Finish: "length"}
	length := int64(of(150*ms, figure.DecodeTPS))
	for i := range 16 {
		req.Tokens = append(req.Tokens, record.TokenRow{Index: i, ID: 7 * i, NS: first + length*int64(i)/15})
	}
	req.ReturnedNS = first + length + ms
	req.Spans = []record.NamedSpan{{Name: record.Prefill, BeginNS: sent,
		EndNS: sent + int64(of(38*ms, figure.PrefillTPS)), How: "as the engine reports it"},
		{Name: record.Decode, BeginNS: first, EndNS: first + length, How: "first to last token"}}
	phase(record.Measure, float64(req.ReturnedNS-sent), of(300, figure.PeakPSS))
	phase(record.Unload, 10*ms, base)
	a.EndNS = at
	a.Requests = []*record.Request{req}
	if s.CPU > 0 {
		a.Sources = map[int]record.Source{1: {Role: "server", Method: record.MethodCPUTime, PID: 7, Start: 1}}
		read := func(ns int64, ms float64) {
			a.Metrics = append(a.Metrics, record.MetricRow{Source: 1, NS: ns, Name: record.CPUTime, Value: ms})
		}
		read(sent-1, 300)
		read(first+1, 340)
		read(req.ReturnedNS+1, 340+of(140, figure.TokenCPU))
	}
	a.Events = []record.Event{{Device: &record.Device{Class: record.CPU, Name: "Example"}},
		{Engine: &record.EngineInfo{Name: "engine", Version: "1",
			Parts:   map[string]string{"browser": "Chromium 156.0"},
			Library: &record.Library{Maker: record.Llmparity, Variant: "software kernels", SHA256: "aa"}}}}
}

// Slowed makes the tokens of a run's cells take another time.
func Slowed(run *record.Run, by map[int]float64) *record.Run {
	for _, a := range run.Attempts {
		for _, q := range a.Requests {
			for i := range q.Tokens {
				q.Tokens[i].NS = q.Tokens[0].NS + int64(by[a.Cell]*float64(q.Tokens[i].NS-q.Tokens[0].NS))
			}
		}
	}
	return run
}
