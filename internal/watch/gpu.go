package watch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/gpu"
)

// GPUColumns are the columns of rows about GPUs, one for each value and reading. role is gpu0 …, or cpu0 for a CPU's
// energy, with empty pid and start; or the name of a process.
const GPUColumns = "timestamp,label,pid,start,role,method,name,value"

// GPUs is what was measured on GPUs.
type GPUs struct {
	Devices []GPUDevice
	Held    []GPUHeld
}

// GPUDevice is a GPU over the whole time; NaN: not reported.
type GPUDevice struct {
	Role, Name               string
	Used, Total              float64 // highest, in bytes
	Busy, MeanBusy           float64 // percent
	Watts, Celsius           float64 // highest
	busyReadings, busyPoints float64
}

// GPUHeld is the highest total GPU memory of the watched processes in one pass, by one method.
type GPUHeld struct {
	Method string
	Bytes  float64
}

// gpus samples devices and the GPU memory of the watched processes. Its methods accept nil.
type gpus struct {
	monitor *gpu.Monitor
	sampler *sample.Sampler
	rows    *Rows // nil: no rows
	say     func(string)

	mu       sync.Mutex
	sources  []record.Source
	written  int
	err      error // of a write
	seen     GPUs
	passes   map[string]map[int]float64 // readings of the current pass, by method and source
	detaches map[*process][]func()
}

// newGPUs returns nil if there is nothing to sample.
func newGPUs(o Options) *gpus {
	if o.GPU == nil || len(o.GPU.GPUs()) == 0 {
		return nil
	}
	g := &gpus{monitor: o.GPU, rows: o.GPURows, say: o.Say, passes: map[string]map[int]float64{},
		detaches: map[*process][]func(){}}
	g.sampler = sample.New(context.Background(), g)
	nan := math.NaN()
	for _, d := range o.GPU.GPUs() {
		g.seen.Devices = append(g.seen.Devices,
			GPUDevice{Role: d.Role, Name: d.Name, Used: nan, Total: nan, Busy: nan, MeanBusy: nan, Watts: nan,
				Celsius: nan})
	}
	for _, s := range o.GPU.Sources() {
		g.sampler.Attach(s)
	}
	return g
}

// follow starts sampling a process.
func (g *gpus) follow(p *process) {
	if g == nil {
		return
	}
	for _, s := range g.monitor.ProcessSources(p.PID, p.Start, p.Name) {
		g.detaches[p] = append(g.detaches[p], g.sampler.Attach(s))
	}
}

func (g *gpus) leave(p *process) {
	if g == nil {
		return
	}
	for _, detach := range g.detaches[p] {
		detach()
	}
	delete(g.detaches, p)
}

// stop ends sampling and returns the result.
func (g *gpus) stop() *GPUs {
	if g == nil {
		return nil
	}
	g.sampler.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for method := range g.passes {
		g.sum(method)
	}
	slices.SortFunc(g.seen.Held, func(a, b GPUHeld) int { return strings.Compare(a.Method, b.Method) })
	return &g.seen
}

// failed returns the error of writing rows.
func (g *gpus) failed() error {
	if g == nil {
		return nil
	}
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
	s := g.sources[source]
	for _, v := range r.Values {
		switch {
		case s.PID == 0:
			g.device(s.Role, v)
		case v.Name == "gpu_memory_bytes":
			g.held(s.Method, source, v.Value)
		}
		if g.rows != nil {
			g.rows.addGPU(r.End, s, v)
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

func (g *gpus) device(role string, v record.Value) {
	for i := range g.seen.Devices {
		d := &g.seen.Devices[i]
		if d.Role != role {
			continue
		}
		switch v.Name {
		case "memory_used_bytes":
			d.Used = highest(d.Used, v.Value)
		case "memory_total_bytes":
			d.Total = v.Value
		case "utilization_gpu_percent":
			d.Busy = highest(d.Busy, v.Value)
			d.busyReadings, d.busyPoints = d.busyReadings+1, d.busyPoints+v.Value
			d.MeanBusy = d.busyPoints / d.busyReadings
		case "power_watts":
			d.Watts = highest(d.Watts, v.Value)
		case "temperature_celsius":
			d.Celsius = highest(d.Celsius, v.Value)
		}
	}
}

func highest(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return max(a, b)
}

// held takes the GPU memory of a process. A source that is read again starts a new pass.
func (g *gpus) held(method string, source int, bytes float64) {
	if _, again := g.passes[method][source]; again || g.passes[method] == nil {
		g.sum(method)
		g.passes[method] = map[int]float64{}
	}
	g.passes[method][source] = bytes
}

// sum ends a pass.
func (g *gpus) sum(method string) {
	pass := g.passes[method]
	if len(pass) == 0 {
		return
	}
	sum := 0.0
	for _, bytes := range pass {
		sum += bytes // whole numbers: exact in any order
	}
	for i := range g.seen.Held {
		if h := &g.seen.Held[i]; h.Method == method {
			h.Bytes = max(h.Bytes, sum)
			return
		}
	}
	g.seen.Held = append(g.seen.Held, GPUHeld{method, sum})
}

// addGPU adds a row about a GPU.
func (r *Rows) addGPU(at time.Time, s record.Source, v record.Value) {
	b := at.AppendFormat(r.buf, stamp)
	b = append(append(append(b, ','), r.label...), ',')
	if s.PID != 0 {
		b = append(strconv.AppendInt(b, int64(s.PID), 10), ',')
		b = strconv.AppendUint(b, s.Start, 10)
	} else {
		b = append(b, ',')
	}
	for _, text := range []string{s.Role, s.Method, v.Name} {
		b = append(append(b, ','), field(text)...)
	}
	b = strconv.AppendFloat(append(b, ','), v.Value, 'f', -1, 64)
	r.buf = append(b, '\n')
	r.rows++
}

// Lines describes the result.
func (g *GPUs) Lines() []string {
	if g == nil {
		return nil
	}
	var out []string
	for _, h := range g.Held {
		out = append(out, fmt.Sprintf("peak GPU memory of the processes: %s (total, by %s)",
			size(int64(h.Bytes)), h.Method))
	}
	if len(g.Held) == 0 {
		out = append(out, "no GPU memory found: none used, or the driver lists other pids, as in a container")
	}
	for _, d := range g.Devices {
		if words := d.words(); words != "" {
			out = append(out, d.Role+" ("+printable(d.Name)+"): "+words)
		}
	}
	return out
}

func (d GPUDevice) words() string {
	var out []string
	say := func(known float64, format string, values ...any) {
		if !math.IsNaN(known) {
			out = append(out, fmt.Sprintf(format, values...))
		}
	}
	say(d.Used, "memory used by all programs at most %s", size(int64(d.Used)))
	say(d.Total, "of %s", size(int64(d.Total)))
	say(d.Busy, "load %.0f%% on average, at most %.0f%%", d.MeanBusy, d.Busy)
	say(d.Watts, "at most %.0f W", d.Watts)
	say(d.Celsius, "at most %.0f °C", d.Celsius)
	return strings.Join(out, ", ")
}
