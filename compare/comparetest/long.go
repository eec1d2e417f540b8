package comparetest

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// longLaunches is how many launches each of a long run's two engines has.
const longLaunches = 5

// Long writes a run of about so many rows of samples.csv and so many of tokens.csv into a folder of its own below root,
// and gives that. It is what a browser of seven processes and a server of one leave behind when each is sampled at the
// usual intervals over five long launches: RSS ten times a second, PSS every other second, the page four times a
// second. To 100 samples come 25 totals and 45 values of the page, as in real records of hours.
func Long(t testing.TB, root string, samples, tokens int) string {
	t.Helper()
	w, err := record.Create(root, record.Meta{Name: "long", Started: Start,
		Tool: record.Tool{Version: "0.1.0", GoOS: "linux", GoArch: "amd64"}},
		record.Environment{OS: "linux", Kernel: "6.12.0", CPU: "Example CPU 3.0 GHz", Cores: 8, MemoryB: 24 << 30,
			Governor: "performance"},
		[]byte("name: long\n"))
	check.Err(t, err)
	browser, native := Browser(longLaunches), Native(longLaunches)
	browser.Processes = []Process{{"browser", 218, 224, 70}, {"zygote", 70, 70, 50}, {"zygote", 60, 60, 50},
		{"gpu-process", 88, 420, 64},
		{"utility-network", 92, 93, 44}, {"utility-storage", 62, 63, 44}, {"renderer", 96, 310, 60}}
	engines := []Engine{browser, native}
	processes := 0
	for _, e := range engines {
		w.Cell(e.Cell)
		processes += len(e.Processes)
	}
	// A second of both engines has so many rows, and each has its launches.
	perSecond := float64(processes) * (1/longTick.Seconds() + 1/longExpensive.Seconds())
	length := time.Duration(float64(samples) / longLaunches / perSecond * float64(time.Second))
	g := &generator{w: w, now: Start.Add(2 * time.Second), rand: rand.New(rand.NewPCG(3, 5))}
	for _, e := range engines {
		for n := range longLaunches {
			g.long(e, n+1, length, tokens/longLaunches/len(engines))
		}
	}
	check.Err(t, w.Close(record.OK))
	return w.Dir()
}

// The intervals of a long run.
const (
	longTick      = 100 * time.Millisecond
	longExpensive = 2 * time.Second
	longPage      = 250 * time.Millisecond
)

// longPhases are the phases with their shares of a launch.
var longPhases = []struct {
	name  record.Phase
	share float64
}{{record.Baseline, 0.02}, {record.Load, 0.05}, {record.Warmup, 0.03}, {record.Measure, 0.85}, {record.Idle, 0.03},
	{record.Unload, 0.02}}

func (g *generator) long(e Engine, repetition int, length time.Duration, tokens int) {
	r := g.w.Begin(e.Cell, record.Beginning{Repetition: repetition, Load1: 0.2})
	if e.Resident {
		page := record.Source{Role: "page", Method: "performance_metrics", PID: 4006, Every: longPage, Waits: true,
			Sees: "JavaScript objects of the page's main thread", Blind: "array buffers"}
		e.Meters = []Meter{{page, func(record.Phase, int, time.Duration) []record.Value { return longValues(g.rand) }}}
	}
	l := &launch{g: g, e: e, r: r, pace: 1, size: 1 + 0.01*g.rand.NormFloat64(), quick: longTick, slow: longExpensive}
	r.Event(record.Event{Engine: &e.Info})
	r.Event(record.Event{Device: &e.Device})
	l.sources()
	for _, p := range longPhases {
		begin, took := g.now, time.Duration(p.share*float64(length))
		spike := time.Duration(g.rand.Float64() * float64(took)).Truncate(longExpensive)
		l.phase(p.name, took, func(x float64) float64 {
			level := longLevel(p.name, x)
			if p.name == record.Measure && time.Duration(x*float64(took)).Round(longTick) == spike {
				level += 0.5 // for one tick
			}
			return level
		})
		if p.name == record.Measure {
			l.requests(begin, begin.Add(took), tokens)
		}
	}
	r.End(record.OK, "", nil, l.cost())
	g.now = g.now.Add(time.Second)
}

// longLevel goes from 0 to 1 over the load, wavers while there is work, and comes back most of the way.
func longLevel(p record.Phase, x float64) float64 {
	switch p {
	case record.Baseline:
		return 0
	case record.Load:
		return math.Pow(x, 0.6)
	case record.Measure:
		return 1 + 0.1*x + 0.02*math.Sin(200*x)
	case record.Unload:
		return 1.1 - 0.8*x
	}
	return 1.02
}

func longValues(r *rand.Rand) []record.Value {
	used := math.Round((6 + 4*r.Float64()) * record.MiB)
	out := []record.Value{{Name: "js_heap_used_bytes", Value: used},
		{Name: "js_heap_total_bytes", Value: used + 3*record.MiB}}
	for _, name := range []string{"documents_count", "frames_count", "js_event_listeners_count", "layout_objects_count",
		"nodes_count",
		"used_bytes", "backing_storage_bytes", "embedder_used_bytes", "total_bytes"} {
		out = append(out, record.Value{Name: name, Value: float64(10 + r.IntN(900))})
	}
	return out
}

// requests are of 500 tokens each, one behind the other.
func (l *launch) requests(begin, end time.Time, tokens int) {
	const each = 500
	of := max(1, tokens/each)
	for n := range of {
		sent := begin.Add(end.Sub(begin) / time.Duration(of) * time.Duration(n))
		took := end.Sub(begin) / time.Duration(of) * 9 / 10
		first := sent.Add(took / 20)
		var out []record.Token
		for i, id := range IDs(tokens / of) {
			at := first.Add(time.Duration(
				(float64(i) + 0.3*l.g.rand.Float64()) * 0.95 * float64(took) / float64(tokens/of)))
			out = append(out, record.Token{Index: i, ID: id, At: at})
		}
		last := first
		if len(out) > 0 {
			first, last = out[0].At, out[len(out)-1].At
		}
		l.r.Request(record.Slot{}, time.Time{}, record.Measure, l.usage(sent, first, last), out, sent.Add(took))
	}
}
