package browser

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"llmparity/internal/depth"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// dispatched is what kernels.js knows of one dispatch: its kernel, when it was recorded (page time), its bound bytes,
// and when the GPU began and ended it, in nanoseconds of its own clock.
type dispatched [5]float64

func (d dispatched) at() float64    { return d[1] }
func (d dispatched) begin() float64 { return d[3] }
func (d dispatched) end() float64   { return d[4] }

// kernelTimes are all dispatches of a generation.
type kernelTimes struct {
	Kernels    []string     `json:"kernels"`
	Dispatches []dispatched `json:"dispatches"`
	Answers    []float64    `json:"answers"` // when a buffer was mapped (page time), and how many dispatches came before
	Made       struct {
		Modules   makes `json:"modules"`
		Pipelines makes `json:"pipelines"`
	} `json:"made"`
}

// makes is what was made since the page began, and for how long at least one was being made.
type makes struct {
	Count int64   `json:"count"`
	MS    float64 `json:"ms"`
}

var _ engine.DeepProfiler = (*Session)(nil)

// Deep generates with each WebGPU dispatch timed by the GPU.
func (s *Session) Deep(ctx context.Context, r engine.Request, _ string) (depth.Profile, error) {
	var p depth.Profile
	if !s.config.Kernels {
		return p, fmt.Errorf("the page of %s was opened without timing of kernels", s.served.Title)
	}
	if there, err := Call[bool](ctx, s.Page, "globalThis.llmparityKernels?.on() ?? false"); err != nil || !there {
		return p, cmp.Or(err, engine.ErrShallow)
	}
	var sampled []time.Time
	u, err := s.Generate(ctx, r, func(t record.Token) { sampled = append(sampled, t.At) })
	if err != nil {
		return p, err
	}
	times, err := Call[kernelTimes](ctx, s.Page, "llmparityKernels.take()")
	if err != nil {
		return p, fmt.Errorf("reading the kernels' times: %w", err)
	}
	if len(times.Dispatches) == 0 || len(sampled) == 0 {
		return p, engine.ErrShallow
	}
	p.Wall = map[string]time.Duration{record.Prefill: sampled[0].Sub(u.Sent),
		record.Decode: sampled[len(sampled)-1].Sub(sampled[0])}
	offset, within := times.offset()
	on := func(ns float64) time.Time { return s.At(ns/1e6 + offset) }
	edges := []edge{{record.Prefill, u.Sent, sampled[0]}, {record.Decode, sampled[0], sampled[len(sampled)-1]}}
	for _, e := range edges {
		times.into(&p, e, on)
	}
	times.created(&p)
	p.Notes = append(p.Notes, fmt.Sprintf("%d dispatches, each in a compute pass of its own with two timestamps; the "+
		"GPU's clock and the page's are known to %.2g ms of each other", len(times.Dispatches), within),
		"MiB are the buffers that a kernel is bound to, which it need not read whole")
	return p, nil
}

// edge is a phase between two times of ours.
type edge struct {
	phase      string
	begin, end time.Time
}

// offset is the page time, in ms, at the zero of the GPU's clock, and how exactly that is known. A kernel begins after
// it is recorded, and ends before a buffer is mapped that was asked for later.
func (k kernelTimes) offset() (ms, within float64) {
	least, most := math.Inf(-1), math.Inf(1)
	for _, d := range k.Dispatches {
		if d.begin() >= 0 {
			least = max(least, d.at()-d.begin()/1e6)
		}
	}
	ended, n := 0.0, 0
	for i := 0; i+1 < len(k.Answers); i += 2 {
		for ; n < min(int(k.Answers[i+1]), len(k.Dispatches)); n++ {
			ended = max(ended, k.Dispatches[n].end())
		}
		if n > 0 {
			most = min(most, k.Answers[i]-ended/1e6)
		}
	}
	if math.IsInf(most, 1) || most < least {
		return least, 0
	}
	return (least + most) / 2, (most - least) / 2
}

// into adds up the rows of a phase. A wait lies between the end of one kernel and the begin of the next, or an edge of
// the phase. Kernels that overlap share the time from the later begin on.
func (k kernelTimes) into(p *depth.Profile, e edge, on func(ns float64) time.Time) {
	all := slices.DeleteFunc(slices.Clone(k.Dispatches), func(d dispatched) bool { return d.begin() < 0 })
	slices.SortStableFunc(all, func(a, b dispatched) int { return cmp.Compare(a.begin(), b.begin()) })
	row := func(role depth.Role, kernel string, self time.Duration, bytes int64) {
		p.Add(depth.Row{Phase: e.phase, Layer: depth.NoLayer, Role: role, Kernel: kernel, Calls: 1, Self: self,
			Bytes: bytes})
	}
	over, wait := e.begin, "before the first kernel"
	for _, d := range all {
		begin, end := on(d.begin()), on(d.end())
		if !end.After(e.begin) || !begin.Before(e.end) {
			continue
		}
		if gap := begin.Sub(over); gap > 0 {
			row(depth.Wait, wait, gap, 0)
		}
		begin, end, wait = later(begin, over), earlier(end, e.end), "between kernels"
		name := k.Kernels[int(d[0])]
		row(depth.RoleOf(name), name, max(0, end.Sub(begin)), int64(d[2]))
		over = later(over, end)
	}
	if gap := e.end.Sub(over); gap > 0 {
		row(depth.Wait, "after the last kernel", gap, 0)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// created adds what was made since the page began. Much of it may be made for the first token only.
func (k kernelTimes) created(p *depth.Profile) {
	made := func(kernel string, m makes) {
		p.Add(depth.Row{Phase: string(record.Load), Layer: depth.NoLayer, Role: depth.Other, Kernel: kernel,
			Calls: m.Count, Self: time.Duration(m.MS * 1e6)})
	}
	made("creating pipelines", k.Made.Pipelines)
	made("compiling shader modules", k.Made.Modules)
}
