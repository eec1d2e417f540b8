package browser

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
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

// kernelTimes are all dispatches of a generation, and what else the thread knows of WebGPU.
type kernelTimes struct {
	Kernels    []string     `json:"kernels"`
	Dispatches []dispatched `json:"dispatches"`
	Answers    []float64    `json:"answers"` // when a buffer was mapped (page time), and how many dispatches came before
	Made       struct {
		Modules   makes `json:"modules"`
		Pipelines makes `json:"pipelines"`
	} `json:"made"`
	Reach *reach `json:"reach"` // nil: unknown
	Held  []held `json:"held"`

	Without bool `json:"without"` // the adapter has no timestamps
}

// makes is what was made since the page began, and for how long at least one was being made.
type makes struct {
	Count int64   `json:"count"`
	MS    float64 `json:"ms"`
}

var _ engine.DeepProfiler = (*Session)(nil)

// Deep generates with each WebGPU dispatch timed by the GPU.
func (s *Session) Deep(ctx context.Context, r engine.Request, prefix string) (depth.Profile, error) {
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
	if times.Without {
		return p, fmt.Errorf("%w: the WebGPU adapter has no timestamps", engine.ErrShallow)
	}
	if len(times.Dispatches) == 0 || len(sampled) == 0 {
		return p, fmt.Errorf("%w: it gave WebGPU nothing to do; choose its WebGPU backend, and an adapter that it can use",
			engine.ErrShallow)
	}
	p.Wall = map[string]time.Duration{record.Prefill: sampled[0].Sub(u.Sent),
		record.Decode: sampled[len(sampled)-1].Sub(sampled[0])}
	offset, within := times.offset()
	on := func(ns float64) time.Time { return s.At(ns/1e6 + offset) }
	edges := []edge{{record.Prefill, u.Sent, sampled[0]}, {record.Decode, sampled[0], sampled[len(sampled)-1]}}
	places := times.places()
	for _, e := range edges {
		times.into(&p, e, places, on)
	}
	times.created(&p)
	p.Notes = append(p.Notes, fmt.Sprintf("%d dispatches, each in a compute pass of its own with two timestamps; the "+
		"GPU's clock and the page's are known to %.2g ms of each other", len(times.Dispatches), within),
		ofClock(p), layersNote(places), "MiB are the buffers that a kernel is bound to, which it need not read whole")
	if n := times.results(func(ms float64) bool { return !s.At(ms).After(sampled[0]) }); n > 1 {
		p.Notes = append(p.Notes, fmt.Sprintf("the first token came after %d results of the GPU: the engine computes a prompt "+
			"in parts, or tells a token later than it has it", n))
	}
	times.Reach.into(&p)
	return p, times.writeHeld(&p, s.ledger, prefix+".buffers.csv")
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

// places returns the place of each dispatch in its forward pass, which ends where the engine reads a result.
func (k kernelTimes) places() (out []depth.Place) {
	names := make([]string, len(k.Dispatches))
	for i, d := range k.Dispatches {
		names[i] = k.Kernels[int(d[0])]
	}
	known := map[string][]depth.Place{} // most passes are equal
	for i := 1; ; i += 2 {
		end := len(names)
		if i < len(k.Answers) {
			end = min(end, int(k.Answers[i]))
		}
		if begin := len(out); end > begin {
			key := strings.Join(names[begin:end], "\n")
			if known[key] == nil {
				known[key] = depth.Places(names[begin:end])
			}
			out = append(out, known[key]...)
		}
		if i >= len(k.Answers) {
			return out
		}
	}
}

// results counts the results that the engine had read by some time.
func (k kernelTimes) results(by func(ms float64) bool) (n int) {
	for i := 0; i+1 < len(k.Answers); i += 2 {
		if by(k.Answers[i]) {
			n++
		}
	}
	return n
}

func layersNote(places []depth.Place) string {
	layers := 0
	for _, p := range places {
		layers = max(layers, p.Layer+1)
	}
	if layers == 0 {
		return "no kernel has a layer, because the kernels of a forward pass do not repeat"
	}
	return fmt.Sprintf("WebGPU knows no layers: they are the %d repeats of kernels in a forward pass, and a matrix product "+
		"without a name of its own is attention's, the feed-forward network's or the head's by its place there", layers)
}

// into adds up the rows of a phase. A wait lies between the end of one kernel and the begin of the next, or an edge of
// the phase. Kernels that overlap share the time from the later begin on.
func (k kernelTimes) into(p *depth.Profile, e edge, places []depth.Place, on func(ns float64) time.Time) {
	type placed struct {
		dispatched
		depth.Place
	}
	var all []placed
	for i, d := range k.Dispatches {
		if d.begin() >= 0 {
			all = append(all, placed{d, places[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.begin(), b.begin()) })
	row := func(at depth.Place, kernel string, self time.Duration, bytes int64) {
		p.Add(depth.Row{Phase: e.phase, Layer: at.Layer, Role: at.Role, Kernel: kernel, Calls: 1, Self: self,
			Bytes: bytes})
	}
	waits := depth.Place{Layer: depth.NoLayer, Role: depth.Wait}
	over, wait := e.begin, beforeKernels
	for _, d := range all {
		begin, end := on(d.begin()), on(d.end())
		if !end.After(e.begin) || !begin.Before(e.end) {
			continue
		}
		if gap := begin.Sub(over); gap > 0 {
			row(waits, wait, gap, 0)
		}
		begin, end, wait = later(begin, over), earlier(end, e.end), "between kernels"
		row(d.Place, k.Kernels[int(d.dispatched[0])], max(0, end.Sub(begin)), int64(d.dispatched[2]))
		over = later(over, end)
	}
	if gap := e.end.Sub(over); gap > 0 {
		row(waits, afterKernels, gap, 0)
	}
}

// Waits at the edges of a phase, between our clock and the GPU's.
const beforeKernels, afterKernels = "before the first kernel", "after the last kernel"

// ofClock says how much of each phase the GPU's clock alone accounts for.
func ofClock(p depth.Profile) string {
	var parts []string
	for _, phase := range []string{record.Prefill, record.Decode} {
		var edges time.Duration
		for _, r := range p.Rows {
			if r.Phase == phase && (r.Kernel == beforeKernels || r.Kernel == afterKernels) {
				edges += r.Self
			}
		}
		if wall := p.Wall[phase]; wall > 0 {
			parts = append(parts, fmt.Sprintf("%.1f%% of %s", 100*(1-float64(edges)/float64(wall)), phase))
		}
	}
	return "kernels and the waits between them, by the GPU's clock alone, are " + strings.Join(parts, " and ")
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
	made("creating pipelines, at most", k.Made.Pipelines)
	made("compiling shader modules, at most", k.Made.Modules)
	p.Notes = append(p.Notes, "pipelines and shader modules take the time until the browser says that they are made: both "+
		"overlap, and it may have computed meanwhile")
}
