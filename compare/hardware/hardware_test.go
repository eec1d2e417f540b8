package hardware

import (
	"math"
	"testing"
	"time"

	"llmparity/internal/record"
)

// measuredAttempt has a measure phase from 3 to 5 s, in which 50 tokens were generated.
func measuredAttempt(id int) *record.Attempt {
	a := &record.Attempt{ID: id, Status: record.OK, EndNS: int64(6 * time.Second), Sources: map[int]record.Source{}}
	for i, p := range []record.Phase{record.Baseline, record.Load, record.Warmup, record.Measure, record.Idle} {
		begin := []int{0, 1, 2, 3, 5}[i]
		end := []int{1, 2, 3, 5, 6}[i]
		a.Phases = append(a.Phases, record.PhaseSpan{Name: p, BeginNS: int64(begin) * int64(time.Second),
			EndNS: int64(end) * int64(time.Second)})
	}
	a.Requests = []*record.Request{{Phase: record.Warmup, Generated: 7}, {Phase: record.Measure, Generated: 20},
		{Phase: record.Measure, Generated: 30}}
	return a
}

func source(a *record.Attempt, id int, role, method string, pid int) {
	a.Sources[id] = record.Source{Role: role, Method: method, PID: pid, Every: 250 * time.Millisecond,
		Blind: "what " + method + " can't see"}
}

// read adds readings of a source every 250 ms from a time on, in seconds; what is not a number was not read.
func read(a *record.Attempt, id int, name string, from, to float64, value func(seconds float64) float64) {
	for at := from; at <= to+1e-9; at += 0.25 {
		if v := value(at); !math.IsNaN(v) {
			a.Metrics = append(a.Metrics, record.MetricRow{Source: id, NS: int64(math.Round(at * 1e9)), Name: name,
				Value: v})
		}
	}
}

func constant(v float64) func(float64) float64 { return func(float64) float64 { return v } }

func find(t *testing.T, all []Hardware, role, method string) Hardware {
	t.Helper()
	for _, h := range all {
		if h.Role == role && h.Method == method {
			return h
		}
	}
	t.Fatalf("nothing of %s by %s in %+v", role, method, all)
	return Hardware{}
}

// want checks the figures' medians; NaN: it is there, and not known.
func want(t *testing.T, h Hardware, figures map[string]float64) {
	t.Helper()
	for _, f := range h.Figures {
		v, ok := figures[f.Name]
		switch {
		case !ok:
			t.Errorf("%s has %s: %v", h.Role, f.Name, f.Center())
		case math.IsNaN(v) != !f.Known() || f.Known() && math.Abs(f.Center()-v) > 1e-6*math.Abs(v)+1e-9:
			t.Errorf("%s of %s is %v (%s), want %v", f.Name, h.Role, f.Center(), f.Absent, v)
		case f.Unit == "" || f.Title == "" || f.How == "" || f.Method == "":
			t.Errorf("%s of %s does not say what it is: %+v", f.Name, h.Role, f)
		}
		delete(figures, f.Name)
	}
	for name := range figures {
		t.Errorf("%s has no %s", h.Role, name)
	}
}

const gibibyte = 1 << 30

func TestFiguresOfAGPU(t *testing.T) {
	a := measuredAttempt(1)
	source(a, 1, "gpu0", "nvml", 0)
	source(a, 9, "page", "heap_usage", 0)
	read(a, 9, "used_bytes", 0, 6, constant(7))
	// Read beside the phase's edges: 3.125 is the first in it.
	read(a, 1, usedBytes, 0.125, 5.9, func(s float64) float64 {
		if s > 4 && s < 4.3 {
			return 6 * gibibyte
		}
		return 4 * gibibyte
	})
	read(a, 1, freeBytes, 0.125, 5.9, func(s float64) float64 { return (10 - s) * gibibyte })
	read(a, 1, busyPercent, 3.125, 4.9, func(s float64) float64 { return map[bool]float64{true: 20, false: 60}[s < 4] })
	read(a, 1, watts, 0.125, 5.9, func(s float64) float64 { return 100 * s })
	read(a, 1, celsius, 0.125, 5.9, func(s float64) float64 { return 40 + math.Round(s) })
	all := Read([]*record.Attempt{a}, []record.GPUInfo{{Role: "gpu0", Name: "Example 9000"}})
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	h := find(t, all, "gpu0", "nvml")
	if h.Name != "Example 9000" || h.Kind != OfGPU {
		t.Errorf("%+v", h)
	}
	// Of eight readings in the phase one has 2 GiB more: the mean is 4.25 GiB, the deviation √(7/64)·2.
	mean, deviation := 4.25*1024.0, math.Sqrt(7.0/64)*2*1024
	want(t, h, map[string]float64{GPUFree: 9.875 * 1024, GPUPeak: 6 * 1024,
		AtBaseline.Name(GPUSum): 4 * 1024, AtPostWarmup.Name(GPUSum): 4 * 1024, GPUMean: mean, GPUDeviation: deviation,
		GPUBusy: 40, GPUBusyMax: 60, GPUBusyDev: 20, GPUPower: 400, GPUPowerMax: 487.5,
		GPUPowerDev: 100 * math.Sqrt(21.0/4) / 4,
		GPUHeat:     46, Energy: 800, EnergyPerToken: 16})
	if f := h.Figure(Energy); f.How != "of the measure phase: "+byPower {
		t.Error(f.How)
	}
}

func TestEnergy(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		name     string
		from, to float64
		value    func(float64) float64
		want     float64
	}{
		"a counter": {joules, 0.125, 5.9, func(s float64) float64 { return 50 * s }, 100},
		"a counter that is read at the edges alone": {joules, 3, 5, func(s float64) float64 {
			if s == 3 || s == 5 {
				return 7 * s
			}
			return nan
		}, 14},
		"a counter that begins anew": {joules, 0, 6, func(s float64) float64 {
			if s > 4 {
				return s
			}
			return 50 * s
		}, nan},
		"one that begins anew behind the phase": {joules, 0, 6, func(s float64) float64 {
			if s > 5.1 {
				return 0
			}
			return 50 * s
		}, 100},
		"constant power":              {watts, 0, 6, constant(30), 60},
		"power of half of the phase":  {watts, 3, 4, constant(30), nan},
		"power of nearly all of it":   {watts, 3, 4.99, constant(30), nan}, // to 4.75
		"power from within the phase": {watts, 3.0625, 6, constant(30), 60},
		"a single reading":            {watts, 4, 4, constant(30), nan},
	} {
		a := measuredAttempt(1)
		source(a, 1, "cpu0", "rapl", 0)
		read(a, 1, c.name, c.from, c.to, c.value)
		h := find(t, Read([]*record.Attempt{a}, nil), "cpu0", "rapl")
		f, by := h.Figure(Energy), h.Figure(EnergyPerToken)
		if f.Known() == math.IsNaN(c.want) || f.Known() && math.Abs(f.Center()-c.want) > 1e-6 || !f.Known() &&
			f.Absent == "" {
			t.Errorf("%s: %v (%s), want %v", name, f.Center(), f.Absent, c.want)
		}
		if by.Known() != f.Known() || by.Known() && math.Abs(by.Center()-c.want/50) > 1e-6 {
			t.Errorf("%s: %v a token", name, by.Center())
		}
	}
	// No tokens, nothing by token; and no measurement, nothing at all.
	a := measuredAttempt(1)
	source(a, 1, "cpu0", "rapl", 0)
	read(a, 1, joules, 0, 6, func(s float64) float64 { return s })
	a.Requests = nil
	if h := find(t, Read([]*record.Attempt{a}, nil), "cpu0", "rapl"); !h.Figure(Energy).Known() ||
		h.Figure(EnergyPerToken).Known() {
		t.Errorf("%+v", h)
	}
	a.Phases = a.Phases[:3]
	if h := find(t, Read([]*record.Attempt{a}, nil), "cpu0", "rapl"); h.Figure(Energy).Known() {
		t.Errorf("%+v", h)
	}
}
