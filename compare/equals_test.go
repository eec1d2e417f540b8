package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// series describes the launches of one run, in memory: what the reader makes of a folder, without the folder.
type series struct {
	launches, cells int
	cv              float64            // of every figure over launches, about half of its square between launches
	shift           map[string]float64 // factors by figure; absent: 1
	engine          string
	bell            bool // they vary by a bell curve, and not with a long tail
}

func (s series) factor(figure string) float64 {
	if f, ok := s.shift[figure]; ok {
		return f
	}
	return 1
}

// vary is a factor around 1, with a long tail to the right as times have when something came in between.
func (s series) vary(r *rand.Rand, cv float64) float64 {
	if s.bell {
		return 1 + cv*r.NormFloat64()
	}
	const shape = 3
	sum := 0.0
	for range shape {
		sum += r.ExpFloat64()
	}
	return 1 + cv*(sum-shape)/math.Sqrt(shape)
}

// run makes the record of that. Figures of a launch have its luck in common, and some of their own on top.
func (s series) run(r *rand.Rand, name string) *record.Run {
	out := &record.Run{Dir: "results/" + name, Meta: record.Meta{Name: name, Started: comparetest.Start}, Status: record.OK,
		Environment: record.Environment{OS: "linux", Kernel: "6.12", CPU: "Example", Cores: 8, MemoryB: 1 << 34}}
	zero := int64(0)
	for c := range s.cells {
		spec := record.Cell{ID: c + 1, Engine: s.engine, Model: comparetest.Tiny(), PromptID: c + 1, Prompt: fmt.Sprint("prompt ", c+1), MaxTokens: 16,
			Repetitions: s.launches, Isolation: record.OfLaunch, PromptCache: record.CacheOff}
		out.Cells = append(out.Cells, spec)
	}
	each := s.cv / math.Sqrt2
	for n := range s.launches {
		for c, spec := range out.Cells {
			luck := s.vary(r, each)
			of := func(base float64, figure string) float64 {
				return base * float64(c+1) * luck * s.vary(r, each) * s.factor(figure)
			}
			a := &record.Attempt{ID: n*s.cells + c + 1, Cell: spec.ID, Repetition: n + 1, Status: record.OK, BeginNS: zero}
			s.fill(a, of)
			out.Attempts = append(out.Attempts, a)
			zero = a.EndNS + int64(time.Second)
		}
	}
	return out
}

func (s series) fill(a *record.Attempt, of func(float64, string) float64) {
	const ms = 1e6
	at := a.BeginNS
	phase := func(p record.Phase, length float64, pss ...float64) {
		for i, v := range pss {
			a.Totals = append(a.Totals, record.TotalRow{Method: record.MethodSmapsRollup, Processes: 1, NS: at + int64(i) + 1, RSS: v + 2, VMS: v + 90, PSS: v,
				USS: v - 1, Swap: math.NaN()})
		}
		a.Phases = append(a.Phases, record.PhaseSpan{Name: p, BeginNS: at, EndNS: at + int64(length)})
		at += int64(length) + 1
	}
	base := of(120, compare.Baseline)
	phase(record.Baseline, 100*ms, base)
	phase(record.Load, of(350*ms, compare.LoadTime), base+10)
	phase(record.Warmup, 50*ms, base+20)
	sent := at
	first := sent + int64(of(40*ms, compare.TTFT))
	req := &record.Request{ID: 1, Phase: record.Measure, SentNS: sent, PromptIDs: []int{1, 2, 3, 4}, Text: "words", Finish: "length"}
	length := int64(of(150*ms, compare.DecodeTPS))
	for i := range 16 {
		req.Tokens = append(req.Tokens, record.TokenRow{Index: i, ID: 7 * i, NS: first + length*int64(i)/15})
	}
	req.ReturnedNS = first + length + ms
	req.Spans = []record.NamedSpan{{Name: record.Prefill, BeginNS: sent, EndNS: sent + int64(of(38*ms, compare.PrefillTPS)), How: "as the engine reports it"},
		{Name: record.Decode, BeginNS: first, EndNS: first + length, How: "first to last token"}}
	phase(record.Measure, float64(req.ReturnedNS-sent), of(300, compare.PeakPSS))
	phase(record.Unload, 10*ms, base)
	a.EndNS = at
	a.Requests = []*record.Request{req}
	a.Events = []record.EventAt{{NS: a.BeginNS, Event: record.Event{Device: &record.Device{Class: record.CPU, Name: "Example"}}},
		{NS: a.BeginNS, Event: record.Event{Engine: &record.EngineInfo{Name: s.engine, Version: "1"}}}}
}

// trial is one comparison of two runs, of a seed of its own.
func trial(seed int, a, b series) *compare.Result {
	r := rand.New(rand.NewPCG(uint64(seed), 99))
	return compare.Runs(a.run(r, "before"), b.run(r, "after"))
}

// share runs trials on all cores and gives the share of which something holds.
func share(trials int, a, b series, holds func(*compare.Result) bool) float64 {
	found := make([]bool, trials)
	var all sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		all.Go(func() {
			for i := w; i < trials; i += workers {
				found[i] = holds(trial(i, a, b))
			}
		})
	}
	all.Wait()
	n := 0
	for _, is := range found {
		if is {
			n++
		}
	}
	return float64(n) / float64(trials)
}

// anyDifference is whether a result calls anything different.
func anyDifference(r *compare.Result) bool {
	for _, c := range r.Comparisons {
		for _, x := range c.Ratios {
			if x.Significant || x.Call == compare.Differs || x.Call == compare.TooSmall {
				return true
			}
		}
	}
	for _, f := range r.Families {
		for _, m := range f.Means {
			if m.Significant || m.Call == compare.Differs || m.Call == compare.TooSmall {
				return true
			}
		}
	}
	return false
}

// Records of equal engines, of which only luck differs: the whole way from records to what is called different must not call more than
// one family in twenty so. A family is a question: six figures in a cell, or in each of two and their means.
func TestOfEqualsAtMostOneFamilyInTwentyIsCalledDifferent(t *testing.T) {
	const families = 1000
	called := 0.0
	for cells, tests := range map[int]int{1: 6, 2: 18} {
		equal := series{launches: 10, cells: cells, cv: 0.05, engine: "engine"}
		r := trial(0, equal, equal)
		if len(r.Families) != 1 || len(r.Comparisons) != cells || r.Families[0].Tests != tests || len(r.Families[0].Means) != 6*(cells-1) {
			t.Fatalf("%d families, %d comparisons, %d means, %d tests", len(r.Families), len(r.Comparisons), len(r.Families[0].Means), r.Families[0].Tests)
		}
		of := share(families/2, equal, equal, anyDifference)
		t.Logf("of %d families of equals over %d cells %.1f %% are called different", families/2, cells, 100*of)
		called += of / 2
	}
	if called > 0.05 {
		t.Errorf("%.1f %% of %d families of equals are called different", 100*called, families)
	}
}

// A shift of a tenth must be found nine times in ten, of ten launches a side that vary by 5 %.
func TestAShiftOfATenthIsFound(t *testing.T) {
	const trials = 200
	equal := series{launches: 10, cells: 1, cv: 0.05, engine: "engine"}
	found := func(figure string) func(*compare.Result) bool {
		return func(r *compare.Result) bool {
			for _, f := range r.Families {
				for _, m := range f.Means {
					if m.Figure == figure && m.Call == compare.Differs {
						return true
					}
				}
			}
			for _, c := range r.Comparisons {
				for _, x := range c.Ratios {
					if x.Figure == figure && x.Call == compare.Differs {
						return true
					}
				}
			}
			return false
		}
	}
	slower := map[string]float64{}
	for _, f := range []string{compare.LoadTime, compare.TTFT, compare.DecodeTPS, compare.PrefillTPS} {
		slower[f] = 1.1
	}
	for _, c := range []struct {
		name   string
		cells  int
		shift  map[string]float64
		figure string
		bell   bool
	}{
		{"decode alone takes a tenth more time", 1, map[string]float64{compare.DecodeTPS: 1.1}, compare.DecodeTPS, false},
		{"decode alone yields a tenth less, by a bell curve", 1, map[string]float64{compare.DecodeTPS: 1 / 0.9}, compare.DecodeTPS, true},
		{"all takes a tenth more time", 1, slower, compare.DecodeTPS, false},
		{"the peak is a tenth higher", 1, map[string]float64{compare.PeakPSS: 1.1}, compare.PeakPSS, false},
		{"decode takes a tenth more time in two cells", 2, map[string]float64{compare.DecodeTPS: 1.1}, compare.DecodeTPS, false},
	} {
		a, b := equal, equal
		a.cells, b.cells, b.shift = c.cells, c.cells, c.shift
		a.bell, b.bell = c.bell, c.bell
		power := share(trials, a, b, found(c.figure))
		t.Logf("%s: found %.1f times in 100", c.name, 100*power)
		if power < 0.9 {
			t.Errorf("%s: found %.1f times in 100", c.name, 100*power)
		}
	}
}
