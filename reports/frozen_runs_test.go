package reports_test

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// scenario are runs, each of some engines, and how they are compared.
type scenario struct {
	runs [][]comparetest.Engine
	by   []string
	// sections are those that are frozen line by line; none: all
	sections []string
	// file of the first run is not as it was written.
	file   string
	change func(string) string
}

func of(engines ...comparetest.Engine) scenario {
	return scenario{runs: [][]comparetest.Engine{engines}}
}

func (s scenario) only(sections ...string) scenario {
	s.sections = sections
	return s
}

func scenarios(t *testing.T) map[string]scenario {
	device := comparetest.Native(1).Device
	pair := func(a, b int, vary float64, change func(a, b *comparetest.Engine)) scenario {
		x, y := comparetest.Browser(a), comparetest.Native(b)
		x.Device, x.Vary, y.Vary = device, vary, vary
		if change != nil {
			change(&x, &y)
		}
		return of(x, y)
	}
	native := func(launches int, slower time.Duration) []comparetest.Engine {
		e := comparetest.Native(launches)
		e.Vary, e.Token = 0.03, e.Token*slower/10
		return []comparetest.Engine{e}
	}
	untimed := comparetest.Native(3)
	untimed.Usage = func(u *record.Usage) { u.Spans = u.Spans[:1] }
	few := comparetest.Native(8)
	few.Stop = stopped(t, record.Stop{Figure: figure.TTFT, Looks: 9, Look: 9, Confidence: 1 - 0.05/9}, 0, few)
	once := comparetest.Measured(comparetest.Browser(7), comparetest.Page())
	once.Reused = true
	byEngine := of(prompts(0.05, 7, 6)...)
	byEngine.by = []string{"engine"}
	byPrompt := of(prompts(0.1, 6, 7)...)
	byPrompt.by = []string{"prompt"}
	cached := insides(6)
	cached[1].Cell.PromptCache = record.CacheOn
	cached[1].Usage = func(u *record.Usage) { u.CachedTokens = 3 }
	lossy := insides(7)
	lossy[0].Warmup, lossy[0].Failing, lossy[0].Cut = true, map[int]record.Class{3: record.DeviceLost}, 5
	closed := of(insides(6)...)
	closed.file, closed.change = "metrics.csv", func(text string) string {
		// A page that was closed in one launch leaves its readings out.
		return regexp.MustCompile(`(?m)^.*,(live|used)_bytes,.*,measure\n`).ReplaceAllStringFunc(text, firstOnes(3))
	}
	return map[string]scenario{
		"one device": pair(7, 6, 0.05, nil),
		"failed, cut and warm-up launches, other tokens": pair(9, 6, 0.2, func(a, b *comparetest.Engine) {
			a.Warmup, a.Failing, a.Cut = true, map[int]record.Class{3: record.DeviceLost}, 5
			b.IDs[40], b.Vary = 3, 0.03
		}),
		"too few": of(comparetest.Browser(2), untimed),
		"all of a cell lost": pair(2, 6, 0.03, func(a, _ *comparetest.Engine) {
			a.Failing = map[int]record.Class{1: record.OOM, 2: record.OOM}
		}),
		"two runs":                       {runs: [][]comparetest.Engine{native(6, 10), native(7, 15)}},
		"means by engine":                byEngine.only("comparisons", "families", "groups"),
		"means by prompt":                byPrompt.only("families", "groups"),
		"too few in some cells":          of(prompts(0.1, 6, 7, 8, 5)...).only("comparisons", "families"),
		"repeated until known":           of(looked(t)...).only("stop", "figures"),
		"repeated, too few to know":      of(few),
		"unsteady launches":              of(unsteady()...).only("figures"),
		"inside and predicted":           of(insides(6)...),
		"inside, lost launches":          of(lossy...).only("failures", "memory_breakdown", "forecast"),
		"inside, cached prompts":         of(cached...).only("figures"),
		"inside, readings missing":       closed.only("memory_breakdown"),
		"GPUs, energy, a server's words": of(metered()...).only("hardware", "server", "reported"),
		"sweeps":                         of(axes()...).only("sweeps"),
		"sweeps over runs": scenario{
			runs: [][]comparetest.Engine{axes()[:1], axes()[1:2], axes()[2:3]},
		}.only(
			"sweeps",
		),
		"prompts of three lengths":  of(prompted(4)...).only("sweeps"),
		"over tokens":               of(slowly()...).only("over_tokens", "distributions", "kv_growth"),
		"over tokens of one launch": of(once).only("over_tokens", "kv_growth"),
		"traffic":                   of(asked(6)...).only("load", "families"),
	}
}

// firstOnes leaves out the first so many.
func firstOnes(n int) func(string) string {
	return func(text string) string {
		if n--; n >= 0 {
			return ""
		}
		return text
	}
}

func TestFrozen(t *testing.T) {
	t.Parallel()
	all := scenarios(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs []*record.Run
			for i, engines := range all[name].runs {
				dir := comparetest.Write(t, t.TempDir(), fmt.Sprint("run", i), engines...)
				if change := all[name].change; change != nil {
					rewrite(t, filepath.Join(dir, all[name].file), change)
				}
				runs = append(runs, comparetest.Open(t, dir))
			}
			o := compare.Defaults()
			o.By = all[name].by
			frozen(t, strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name), compare.With(o, runs...),
				all[name].sections...)
		})
	}
}

// prompts is both engines at several prompts, each with its own speed; the launches of a cell are so many in turn.
func prompts(vary float64, launches ...int) []comparetest.Engine {
	var out []comparetest.Engine
	for i, prompt := range []string{"Once", "upon"} {
		a, b := comparetest.Browser(launches[2*i%len(launches)]), comparetest.Native(launches[(2*i+1)%len(launches)])
		a.Device, a.Vary, b.Vary = b.Device, vary, vary
		b.Token, b.TTFT = a.Token*time.Duration(90+i*7)/100, a.TTFT*time.Duration(103-i)/100
		a.Cell.ID, b.Cell.ID = 2*i+1, 2*i+2
		a.Cell.Prompt, b.Cell.Prompt, a.Cell.PromptID, b.Cell.PromptID = prompt, prompt, i+1, i+1
		out = append(out, a, b)
	}
	return out
}

// stopped says of the last cell of some, made before it was looked at, why it was not repeated any more: the interval
// of a figure reaches from its order-th value to the one as far from the other end; 0: there are too few for one.
func stopped(t *testing.T, s record.Stop, order int, all ...comparetest.Engine) *record.Stop {
	t.Helper()
	f := compare.Runs(comparetest.Run(t, "before", all...)).Cells[len(all)-1].Figure(s.Figure)
	var values []float64
	for _, v := range f.Values {
		values = append(values, v.Value)
	}
	slices.Sort(values)
	s.Cell, s.Repetitions, s.Level, s.Median = all[len(all)-1].Cell.ID, len(values), 0.95, f.Center()
	if order > 0 {
		s.Low, s.High = &values[order-1], &values[len(values)-order]
	}
	return &s
}

// looked are cells that were repeated until a figure was known well enough, or as often as may be.
func looked(t *testing.T) []comparetest.Engine {
	t.Helper()
	a, b := comparetest.Measured(comparetest.Browser(12), comparetest.Page()),
		comparetest.Loaded(comparetest.Native(11), 2, 2, 20)
	a.Vary, b.Vary = 0.05, 0.05
	a.Stop = stopped(t, record.Stop{Figure: figure.DecodeTPS, Looks: 5, Look: 3, Confidence: 0.99, Percent: 20,
		Narrow: true}, 2, a)
	b.Stop = stopped(t, record.Stop{Figure: figure.TTFT, Looks: 2, Look: 2, Confidence: 0.975, Percent: 0.1}, 2, a, b)
	return []comparetest.Engine{a, b}
}

// delayed is an engine of which requests wait for so much longer than usual, in ms, one after another.
func delayed(id int, vary float64, ms ...float64) comparetest.Engine {
	e := comparetest.Native(len(ms))
	e.Cell.ID, e.Vary = id, vary
	e.Cell.PromptID, e.Cell.Prompt = id, strings.Repeat("once ", id) // each is set against nothing
	n := 0
	e.Usage = func(u *record.Usage) {
		u.Sent = u.Sent.Add(-time.Duration(ms[n] * 1e6))
		u.Spans[0].Begin = u.Sent
		n++
	}
	return e
}

// unsteady are engines whose launches are not alike, each in another way.
func unsteady() []comparetest.Engine {
	return []comparetest.Engine{
		delayed(1, 0.01, 1, 2, 3, 4, 5, 6, 7, 8),
		delayed(2, 0.01, 8, 7, 6, 5, 4.5, 4, 3),
		delayed(3, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5),
		delayed(4, 0, 1, 1, 1, 1, 1, 1, 1, 1),
		delayed(5, 0.01, 0, 0, 0, 300, 0, 0, 900, 0, 0, 0, 0, 0),
		delayed(6, 0, 0, 0, 0, 0, 0, 0, 0.1, 9),
		delayed(7, 0.25, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		delayed(8, 0.01, 1, 20, 3, 40, 5),
		delayed(9, 0.02, 3, 1, 2, 5, 4, 6),
		delayed(10, 0.01, 1, 2, 3, 4, 6, 5),
	}
}

// insides are engines of which there is everything to say about memory: what is inside, peaks of phases, what was
// predicted.
func insides(launches int) []comparetest.Engine {
	a, b := comparetest.Measured(comparetest.Browser(launches), comparetest.Page()),
		comparetest.Measured(comparetest.Native(launches), nil)
	a.Vary, b.Vary, a.Device = 0.04, 0.04, b.Device
	a = comparetest.Mapped(a)
	part := comparetest.Predict
	a.Prediction = &record.Prediction{Source: "webllm-package", Setup: map[string]string{"context": "256"},
		Parts: []record.Predicted{part(figure.ModelWeights, 4.004, 4.004, 4.004, "f32"),
			part(figure.KVCache, 0.27, 0.27, 0.27, "f16"),
			part(figure.KVCacheUsed, 0.06, 0.06, 0.07, "f32"), part(figure.Activations, 0.5, 0.9, 1.6, "f32"),
			part(figure.FrameworkOverhead, 40, 80, 110, ""),
			part(figure.MemoryIncrease, 60, 90, 130, ""), part(figure.TotalMemory, 60, 85, 120, "")}}
	place := func(name string, need, high, free int64) record.Place {
		return record.Place{Name: name, Need: need << 20, High: high << 20, Free: free << 20, Level: record.RiskLow,
			How: "told"}
	}
	a.Risk = &record.Risk{Level: record.RiskMedium,
		Places:  []record.Place{place("ram", 460, 500, 520), place("renderer", 80, 110, 4096)},
		Reasons: []string{"tight"}}
	a.Risk.Places[0].Level = record.RiskMedium
	b.Prediction = &record.Prediction{Source: "gguf",
		Parts: []record.Predicted{part(figure.ModelWeights, 4, 4, 4, "f32"),
			part(figure.MemoryIncrease, 10, 100, 200, "")}}
	return []comparetest.Engine{a, b}
}

// axes are cells that differ in one thing from the first, each in another, and some in two.
func axes() []comparetest.Engine {
	var out []comparetest.Engine
	add := func(change func(*comparetest.Engine)) {
		e := comparetest.Native(4)
		e.Info.Policy = map[string]string{"kv_dtype": "f16", "weights_dtype": "f32", "context": "256", "threads": "1"}
		change(&e)
		e.Cell.ID = len(out) + 1
		out = append(out, e)
	}
	setup := func(context int, kv string) func(*comparetest.Engine) {
		return func(e *comparetest.Engine) {
			e.Cell.Model.Context, e.Info.Policy["context"], e.Info.Policy["kv_dtype"] = context, fmt.Sprint(context), kv
			e.Processes[0].Loaded += float64(context) / 1024
		}
	}
	add(func(*comparetest.Engine) {})
	add(setup(512, "f16"))
	add(setup(2048, "f16"))
	add(setup(512, "q8_0"))
	add(setup(256, "f32"))
	add(func(e *comparetest.Engine) {
		e.Cell.MaxTokens, e.IDs = 32, e.IDs[:32]
	})
	add(func(e *comparetest.Engine) { e.Info.Policy["threads"], e.Cell.MaxTokens = "2", 96 }) // alone
	add(func(e *comparetest.Engine) { *e = comparetest.Loaded(*e, 0, 2, 20) })
	add(func(e *comparetest.Engine) { *e = comparetest.Loaded(*e, 0, 3, 30) })
	add(func(e *comparetest.Engine) {
		*e = comparetest.Loaded(*e, 0, 4, 8)
		e.Cell.Traffic.Loop = record.Batch
	})
	return out
}

// slowly are engines that take so long for a token that memory is read between them.
func slowly() []comparetest.Engine {
	a, b := comparetest.Measured(comparetest.Browser(7), comparetest.Page()), comparetest.Native(8)
	b.Token, b.Vary = 30*time.Millisecond, 0.1
	b.Failing = map[int]record.Class{3: record.DeviceLost}
	return []comparetest.Engine{a, b}
}

// prompted are engines with prompts of several lengths.
func prompted(launches int) []comparetest.Engine {
	var engines []comparetest.Engine
	for n, length := range []int{16, 64, 256} {
		for _, e := range []comparetest.Engine{comparetest.Measured(comparetest.Browser(launches), comparetest.Page()),
			comparetest.Native(launches)} {
			e.Cell.ID, e.Cell.PromptID, e.Cell.Prompt = 10*e.Cell.ID+n, n+1,
				fmt.Sprintf("a prompt of %d tokens", length)
			e.PromptIDs = comparetest.IDs(length)
			engines = append(engines, e)
		}
	}
	return engines
}

// asked are two engines on one device at two numbers of clients and with a mix that has a goal.
func asked(launches int) []comparetest.Engine {
	var out []comparetest.Engine
	device := comparetest.Native(1).Device
	for n, clients := range []int{2, 3} {
		a, b := comparetest.Loaded(comparetest.Measured(comparetest.Browser(launches), comparetest.Page()), 3*n+1,
			clients, 10*clients), comparetest.Loaded(comparetest.Native(launches), 3*n+2, clients, 10*clients)
		a.Slots, a.Device = 1, device
		out = append(out, a, b)
	}
	mixed := comparetest.Mixed(comparetest.Native(launches), 9, 3, 24, 4)
	return append(out, mixed)
}

// metered are engines beside which GPUs, processors, what processes hold of GPUs, and a server's own words are read.
func metered() []comparetest.Engine {
	a, b := comparetest.Browser(6), comparetest.Native(7)
	wave := func(at time.Duration, around, by float64) float64 { return around + by*math.Sin(7*at.Seconds()) }
	meter := func(role, method string, pid int, every time.Duration,
		read func(p record.Phase, attempt int, at time.Duration) []record.Value) comparetest.Meter {
		return comparetest.Meter{Read: read,
			Source: record.Source{Role: role, Method: method, PID: pid, Every: every, Sees: "what " + method + " sees",
				Blind: "what it doesn't"}}
	}
	gpu := func(role string, size float64) comparetest.Meter {
		return meter(role, "nvml", 0, 100*time.Millisecond,
			func(p record.Phase, attempt int, at time.Duration) []record.Value {
				used := wave(at, size, size/7)
				out := []record.Value{{Name: "memory_free_bytes", Value: wave(at, 2*size, size/9)},
					{Name: "utilization_gpu_percent", Value: math.Round(wave(at, 50, 40))},
					{Name: "temperature_celsius", Value: math.Round(wave(at, 60, 9))}}
				// What two devices held most at is never one moment: the other one doesn't answer then.
				turn := int(at/(100*time.Millisecond)) % 5
				if turn == 0 && role == "gpu0.mig1" || turn == 1 && role == "gpu1" {
					used *= 2
				}
				if !(turn == 1 && role == "gpu0.mig1" || turn == 0 && role == "gpu1") {
					out = append(out, record.Value{Name: "memory_used_bytes", Value: used})
				}
				// The second one's power is not known to the very end of a measurement, and once not at all.
				if role != "gpu0.mig1" && !(role == "gpu1" && (attempt == 3 || p != record.Measure)) {
					out = append(out, record.Value{Name: "power_watts", Value: wave(at, 200, 90)})
				}
				return out
			})
	}
	zone := func(role string) comparetest.Meter {
		return meter(role, "rapl", 0, 50*time.Millisecond,
			func(_ record.Phase, attempt int, at time.Duration) []record.Value {
				if role == "cpu1" && attempt == 5 && at%(200*time.Millisecond) < 100*time.Millisecond {
					// it begins anew
					return []record.Value{{Name: "energy_joules", Value: 0}, {Name: "power_watts", Value: 5}}
				}
				return []record.Value{{Name: "energy_joules", Value: 30*at.Seconds() + math.Sin(at.Seconds())},
					{Name: "power_watts", Value: wave(at, 30, 5)}}
			})
	}
	process := func(role string, pid int, size float64) comparetest.Meter {
		return meter(role, "fdinfo", pid, 100*time.Millisecond,
			func(p record.Phase, _ int, at time.Duration) []record.Value {
				if p == record.Baseline {
					return nil
				}
				return []record.Value{{Name: "gpu_memory_bytes", Value: wave(at, 2*size, size)},
					{Name: "gpu0.gpu_memory_bytes", Value: wave(at, size, size/2)},
					{Name: "gpu1.gpu_memory_bytes", Value: wave(at, size, size/3)},
					{Name: "gpu_system_memory_bytes", Value: size}}
			})
	}
	a.Meters = []comparetest.Meter{gpu("gpu0", 9e9), gpu("gpu0.mig1", 4e9), gpu("gpu1", 7e9),
		process("gpu-process", 4002, 5e8), process("renderer", 4001, 1e7)}
	b.Meters = []comparetest.Meter{zone("cpu0"), zone("cpu1"), gpu("gpu0", 3e9),
		meter("server", "server_metrics", 0, 100*time.Millisecond,
			func(p record.Phase, attempt int, at time.Duration) []record.Value {
				count := math.Floor(20 * at.Seconds())
				if attempt == 9 && p == record.Measure {
					count = 0 // another server
				}
				return []record.Value{{Name: "generated_tokens_count", Value: count},
					{Name: "kv_cache_usage_ratio", Value: wave(at, 0.4, 0.3)}}
			})}
	return []comparetest.Engine{a, b}
}
