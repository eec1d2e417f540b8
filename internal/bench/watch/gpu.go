package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/record"
)

// GPUColumns are the columns of rows about GPUs, one for each value and reading. role is gpu0 …, or cpu0 for a CPU's
// energy, with empty pid and start; or the name of a process.
const GPUColumns = "timestamp,label,pid,start,role,method,name,value"

// gpus samples devices and the GPU memory of the watched processes.
type gpus struct {
	monitor *gpu.Monitor // nil: there is nothing to sample
	sampler *sample.Sampler
	rows    *Rows // nil: no rows
	say     func(string)

	mu      sync.Mutex
	sources []record.Source
	written int
	err     error                      // of a write
	held    map[string]float64         // highest total of the processes in one pass, by method
	passes  map[string]map[int]float64 // readings of the current pass, by method and source
}

func newGPUs(o Options) *gpus {
	g := &gpus{rows: o.GPURows, say: o.Say, held: map[string]float64{}, passes: map[string]map[int]float64{}}
	g.sampler = sample.New(context.Background(), g)
	if o.GPU != nil && len(o.GPU.GPUs) > 0 {
		g.monitor = o.GPU
		for _, s := range o.GPU.Sources() {
			g.sampler.Attach(s)
		}
	}
	return g
}

// follow starts sampling a process.
func (g *gpus) follow(p *process) {
	if g.monitor == nil {
		return
	}
	for _, s := range g.monitor.ProcessSources(p.PID, p.Start, p.Name) {
		p.detach = append(p.detach, g.sampler.Attach(s))
	}
}

// stop ends sampling and returns the lines of the summary.
func (g *gpus) stop() []string {
	g.sampler.Stop()
	if g.monitor == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for _, method := range slices.Sorted(maps.Keys(g.held)) {
		out = append(out, fmt.Sprintf("peak GPU memory of the processes: %s (total, by %s)",
			size(int64(g.held[method])), method))
	}
	if len(out) == 0 {
		out = append(out, "no GPU memory found: the processes use none, or the driver lists other pids, as in a container")
	}
	return out
}

// failed returns the error of writing rows.
func (g *gpus) failed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Source, Sample, Total and Warn implement sample.Sink.
func (g *gpus) Source(s record.Source) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sources = append(g.sources, s)
	return len(g.sources) - 1
}

// Sample evaluates a reading and writes its rows.
func (g *gpus) Sample(source int, r record.Sample) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, pid, start := g.sources[source], "", ""
	if s.PID != 0 {
		pid, start = strconv.Itoa(s.PID), strconv.FormatUint(s.Start, 10)
	}
	for _, v := range r.Values {
		if s.PID != 0 && v.Name == "gpu_memory_bytes" {
			g.hold(s.Method, source, v.Value)
		}
		if g.rows != nil {
			g.rows.row(r.End.Format(stamp), g.rows.label, pid, start, s.Role, s.Method, v.Name,
				strconv.FormatFloat(v.Value, 'f', -1, 64))
		}
	}
	if g.rows != nil && g.err == nil {
		var n int
		n, g.err = g.rows.flush()
		g.written += n
	}
}

func (g *gpus) Total(record.Total) {}

func (g *gpus) Warn(w record.Warning) { g.say(w.Text) }

// hold takes the GPU memory of a process. A source that is read again starts a new pass.
func (g *gpus) hold(method string, source int, bytes float64) {
	pass := g.passes[method]
	if _, again := pass[source]; again || pass == nil {
		pass = map[int]float64{}
		g.passes[method] = pass
	}
	pass[source] = bytes
	sum := 0.0
	for _, bytes := range pass {
		sum += bytes // whole numbers: exact in any order
	}
	g.held[method] = max(g.held[method], sum)
}
