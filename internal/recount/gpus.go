package recount

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// What an engine takes that computes on a GPU, worked out again: its whole is what drivers count for its processes, not
// their PSS.

// placed is where an engine computes, as it told.
type placed struct {
	Class  string
	Detail map[string]string
}

// onGPU tells whether a GPU computes.
func (g *memoryAgain) onGPU() bool { return g.device() == "gpu" }

// device is where the first attempt that told computes.
func (g *memoryAgain) device() string { return g.place().Class }

func (g *memoryAgain) place() placed {
	for _, a := range g.counted {
		if a.placed.Class != "" {
			return a.placed
		}
	}
	return placed{}
}

// holder is a process of which drivers tell.
type holder struct {
	pid   int
	start uint64
}

// heldAt is what an attempt's processes hold of GPUs at a time, in bytes: each source's latest word is good for four of
// its intervals, which are a quarter of a second at least; of two about one process the higher one is.
func (a *memoryAttempt) heldAt(at int64, words map[int][]memoryMetric) float64 {
	most := map[holder]float64{}
	for id, rows := range words {
		next := sort.Search(len(rows), func(i int) bool { return rows[i].at > at })
		s := a.sources[id]
		if next == 0 || at-rows[next-1].at > 4*max(250e6, s.Every) {
			continue
		}
		key := holder{s.PID, s.Start}
		most[key] = math.Max(most[key], rows[next-1].value)
	}
	sum := 0.0
	for _, v := range most {
		sum += v
	}
	return sum
}

// held are the sums of an attempt, and when: questions that are less than a millisecond apart are one, which is over
// with its last answer.
func (a *memoryAttempt) held() (at []int64, sums []float64) {
	words := a.telling("gpu_memory_bytes", func(s memorySource) bool { return s.PID > 0 })
	for _, rows := range words {
		for _, m := range rows {
			at = append(at, m.at)
		}
	}
	slices.Sort(at)
	ends := at[:0:0]
	for i, t := range at {
		if i == len(at)-1 || at[i+1]-t >= 1e6 {
			ends = append(ends, t)
		}
	}
	for _, t := range ends {
		sums = append(sums, a.heldAt(t, words))
	}
	return ends, sums
}

// gpuWhole is how much more of GPUs' memory processes held at most than at the end of the baseline, where nobody listed
// one: than none.
func (g *memoryAgain) gpuWhole() (increase, total Figure) {
	for _, l := range g.launches {
		base, peak := 0.0, math.NaN()
		begin, _, next, ok := l.opener.stretch("baseline")
		at, sums := l.opener.held()
		for i, sum := range sums {
			if ok && at[i] >= begin && at[i] < next {
				base = sum
			}
		}
		of := l.members
		if l.opener.status == "ok" {
			of = append([]*memoryAttempt{l.opener}, of...)
		}
		for _, a := range of {
			_, sums := a.held()
			for _, sum := range sums {
				peak = higher(peak, sum)
			}
		}
		total.keep(l.opener.id, peak/mib, false)
		increase.keep(l.opener.id, (peak-base)/mib, false)
	}
	total.conclude()
	increase.conclude()
	return increase, total
}

// shared tells whether a model lies on a GPU in part: by its layers, or by what a server says of its size.
func (g *memoryAgain) shared() bool {
	on, all, ok := strings.Cut(g.says("gpu_layers"), " of ")
	size, there := g.place().number("size_bytes"), g.place().number("size_vram_bytes")
	return g.onGPU() && (ok && on != all || size > there && there > 0)
}

// alone tells whether one device computes: none but the processor, the one that a page asks for, or that one of all
// that holds memory.
func (g *memoryAgain) alone() bool {
	switch g.holding() {
	case 0:
		return g.device() != "" && (!g.onGPU() || g.engine == "webllm")
	case 1:
		return g.device() != ""
	}
	return false
}

// width is how many bytes an element of a cache takes.
func width(dtype string) float64 {
	of := map[string]float64{"f32": 4, "float32": 4, "f16": 2, "bf16": 2, "float16": 2, "bfloat16": 2, "q8_0": 34. / 32,
		"q4_0": 18. / 32,
		"fp8":  1, "fp8_e4m3": 1, "fp8_e5m2": 1}
	return of[strings.ToLower(dtype)]
}

// number is what a server told, 0 where it is none.
func (p placed) number(name string) float64 {
	v, _ := strconv.ParseFloat(p.Detail[name], 64) // 0 of what is none
	return v
}

// elsewhere is what of a launch's parts an engine's log names as buffers of the machine's memory, in MiB: when the
// measurement ended, else the load.
func (g *memoryAgain) elsewhere(l memoryLaunch) float64 {
	if !g.onGPU() {
		return 0
	}
	for _, phase := range []string{"measure", "load"} {
		v := l.latest(phase, func(a *memoryAttempt) float64 {
			told, sum := false, 0.0
			for _, m := range a.metrics {
				if m.edge != phase || a.sources[m.source].Method != "engine_log" {
					continue
				}
				told = true
				of, buffer, _ := strings.Cut(m.name, ".")
				buffer, sized := strings.CutSuffix(buffer, "_bytes")
				host := strings.HasPrefix(buffer, "CPU") || strings.HasSuffix(buffer, "_Host")
				if host && sized && of != "recurrent_state" { // which is no part
					sum += m.value / mib
				}
			}
			if !told {
				return math.NaN()
			}
			return sum
		})
		if !math.IsNaN(v) {
			return v
		}
	}
	return 0
}
