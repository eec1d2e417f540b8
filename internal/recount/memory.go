package recount

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Where memory is, of what it is made and how it was foretold, worked out again. Not worked out again: words on
// what explains an error, but for which components they are on and the numbers in them.

// memoryResult is of a report's JSON what is about memory.
type memoryResult struct {
	Cells []struct {
		Sampler []figure
		Memory  *struct {
			Load, Measure, Retained []figure
			Peaks                   []struct {
				Process string
				Phases  []figure
			}
		}
		Parts *struct {
			Of         string
			Components []struct {
				figure
				Method, Origin, Confidence string
			}
			Beyond []struct {
				figure
				Method, Confidence string
			}
			Confidence string
		} `json:"memory_breakdown"`
		Forecast *struct {
			Parts           []memoryForetold
			Recommendations []string
		}
		Risk    json.RawMessage
		Refused string
	}
}

type memoryForetold struct {
	Name     string
	Title    string
	Low      *float64 `json:"predicted_low"`
	Best     *float64 `json:"predicted"`
	High     *float64 `json:"predicted_high"`
	Measured *float64
	Interval *struct{ Lo, Hi float64 } `json:"measured_interval"`
	N        int                       `json:"launches"`
	Error    *float64                  `json:"error_mib"`
	Percent  *float64                  `json:"error_percent"`
	Within   *bool                     `json:"within_range"`
	Expected *struct {
		Variance float64 `json:"variance_percent"`
	}
	AsExpected *bool `json:"within_expected"`
	Verdict    string
}

type memorySource struct {
	ID           int
	Role, Method string
	PID          int
	Start        uint64
	Every        int64 `json:"every_ns"`
}

// memorySample is a row of samples.csv; sizes in MiB, NaN where there are none.
type memorySample struct {
	source   int
	at, cost int64
	pss, hwm float64
	edge     string
}

// memoryMetric is a row of metrics.csv.
type memoryMetric struct {
	source int
	at     int64
	name   string
	value  float64
	edge   string
}

// memoryAttempt is what the folder has of an attempt beside what attempt has.
type memoryAttempt struct {
	*attempt
	begin   int64
	cost    struct{ Reads, ReadNS, CPUNS int64 }
	sources map[int]memorySource
	samples []memorySample
	metrics []memoryMetric
	policy  map[string]string // what the engine said last
	placed  placed
	status  string
}

type memoryCell struct {
	engine string
	cache  string // whether the plan has prompts cached
	model  struct {
		DType      string
		Parameters float64
		WeightsB   float64 `json:"weights_bytes"`
		Layers     float64
		Heads      float64
		KVHeads    float64 `json:"kv_heads"`
		HeadDim    float64 `json:"head_dim"`
		Hidden     float64 `json:"hidden_size"`
		Vocab      float64 `json:"vocab_size"`
		Context    float64
	}
	setup    map[string]string     // what was taken for granted
	foretold map[string][3]float64 // low, best, high in MiB, by name
	sure     map[string]bool       // of these with high confidence
	risk     json.RawMessage       // as it was recorded
}

type memoryFolder struct {
	cells    map[int]*memoryCell
	attempts []*memoryAttempt // but scorings
	by       map[int]*memoryAttempt
}

func readMemory(base *folder) (*memoryFolder, error) {
	f := &memoryFolder{cells: map[int]*memoryCell{}, by: map[int]*memoryAttempt{}}
	for id, a := range base.by {
		f.by[id] = &memoryAttempt{attempt: a, sources: map[int]memorySource{}}
	}
	for _, a := range base.attempts {
		f.attempts = append(f.attempts, f.by[a.id])
	}
	if err := f.journal(filepath.Join(base.dir, "journal.jsonl")); err != nil {
		return nil, err
	}
	err := base.rows("samples.csv", func(r row) error {
		a := f.by[int(whole(r, "attempt"))]
		a.samples = append(a.samples, memorySample{int(whole(r, "source")), whole(r, "t_ns"), whole(r, "read_ns"),
			size(r, "pss_mb"), size(r, "hwm_mb"), r.text("edge")})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(base.dir, "metrics.csv")); os.IsNotExist(err) {
		return f, nil // nothing was read inside an engine
	}
	return f, base.rows("metrics.csv", func(r row) error {
		a := f.by[int(whole(r, "attempt"))]
		a.metrics = append(a.metrics, memoryMetric{int(whole(r, "source")), whole(r, "t_ns"), r.text("name"),
			size(r, "value"), r.text("edge")})
		return nil
	})
}

func (f *memoryFolder) journal(path string) error {
	return eachLine(path, func(line []byte) error {
		var l struct {
			NS      int64 `json:"t_ns"`
			Attempt int
			Cell    *struct {
				ID     int
				Engine string
				Cache  string `json:"prompt_cache"`
				Model  json.RawMessage
			}
			Prediction *struct {
				Cell  int
				Setup map[string]string
				Parts []struct {
					Name string
					Low  float64 `json:"low_bytes"`
					Best float64 `json:"bytes"`
					High float64 `json:"high_bytes"`
					Sure string  `json:"confidence"`
				}
			}
			Risk   json.RawMessage
			Begin  json.RawMessage
			Source *memorySource
			Event  *struct {
				Engine *struct{ Policy map[string]string }
				Device *placed
			}
			End *struct {
				Status string
				Cost   struct {
					Reads  int64
					ReadNS int64 `json:"read_ns"`
					CPUNS  int64 `json:"self_cpu_ns"`
				}
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		a := f.by[l.Attempt]
		switch {
		case l.Cell != nil:
			c := &memoryCell{engine: l.Cell.Engine, cache: l.Cell.Cache}
			if err := json.Unmarshal(l.Cell.Model, &c.model); err != nil {
				return err
			}
			f.cells[l.Cell.ID] = c
		case l.Prediction != nil:
			c := f.cells[l.Prediction.Cell]
			c.foretold, c.sure = map[string][3]float64{}, map[string]bool{}
			c.setup = l.Prediction.Setup
			for _, p := range l.Prediction.Parts {
				c.foretold[p.Name] = [3]float64{p.Low / (1 << 20), p.Best / (1 << 20), p.High / (1 << 20)}
				c.sure[p.Name] = p.Sure == "high"
			}
		case l.Risk != nil:
			var of struct{ Cell int }
			if err := json.Unmarshal(l.Risk, &of); err != nil {
				return err
			}
			f.cells[of.Cell].risk = l.Risk
		case a == nil: // of the run
		case l.Begin != nil:
			a.begin = l.NS
		case l.Source != nil:
			a.sources[l.Source.ID] = *l.Source
		case l.Event != nil && l.Event.Engine != nil:
			a.policy = l.Event.Engine.Policy
		case l.Event != nil && l.Event.Device != nil:
			a.placed = *l.Event.Device
		case l.End != nil:
			a.status = l.End.Status
			a.cost.Reads, a.cost.ReadNS, a.cost.CPUNS = l.End.Cost.Reads, l.End.Cost.ReadNS, l.End.Cost.CPUNS
		}
		return nil
	})
}

// stretch is a phase's begin and end, and where the next one begins: what is read in between, at its edge, is the
// phase's.
func (a *memoryAttempt) stretch(phase string) (begin, end, next int64, ok bool) {
	for i, p := range a.phases {
		if p.Name != phase {
			continue
		}
		next := a.attempt.end + 1
		if i+1 < len(a.phases) {
			next = a.phases[i+1].Begin
		}
		return p.Begin, p.End, next, true
	}
	return 0, 0, 0, false
}

// memoryLaunch is a process's life: its repetitions, and the attempt that opened it, which has the load.
type memoryLaunch struct {
	opener  *memoryAttempt
	members []*memoryAttempt
}

func (l memoryLaunch) having(phase string) []*memoryAttempt {
	if phase == "baseline" || phase == "load" || phase == "warmup" {
		return []*memoryAttempt{l.opener}
	}
	return l.members
}

// latest is that of the repetitions' readings which came last.
func (l memoryLaunch) latest(phase string, of func(*memoryAttempt) float64) float64 {
	v := math.NaN()
	for _, a := range l.having(phase) {
		if x := of(a); !math.IsNaN(x) {
			v = x
		}
	}
	return v
}

// memoryAgain are a cell's counted attempts, and what was worked out of them.
type memoryAgain struct {
	*memoryCell
	cell     *Cell
	counted  []*memoryAttempt
	launches []memoryLaunch
	methods  map[string]bool
}

func (f *memoryFolder) again(cell *Cell) *memoryAgain {
	g := &memoryAgain{memoryCell: f.cells[cell.ID], cell: cell, methods: map[string]bool{}}
	for _, a := range f.attempts {
		if a.cell != cell.ID || !a.counted {
			continue
		}
		g.counted = append(g.counted, a)
		at := slices.IndexFunc(g.launches, func(l memoryLaunch) bool { return l.opener.id == a.opener })
		if at < 0 {
			at, g.launches = len(g.launches), append(g.launches, memoryLaunch{opener: f.by[a.opener]})
		}
		g.launches[at].members = append(g.launches[at].members, a)
		for _, s := range a.sources {
			g.methods[s.Method] = true
		}
	}
	return g
}

// keep is Cell.add for a figure alone; what is bytes is exact.
func (f *Figure) keep(launch int, v float64, exact bool) {
	if math.IsNaN(v) {
		return
	}
	if !exact {
		v = math.Round(v*1e6) / 1e6
	}
	f.Values, f.launches = append(f.Values, v), append(f.launches, launch)
}

// of is a launch's value; NaN where there is none.
func (f Figure) of(launch int) float64 {
	if at := slices.Index(f.launches, launch); at >= 0 {
		return f.Values[at]
	}
	return math.NaN()
}

// metricOf is under which name a figure of where memory is lies in metrics.csv, and by which method; logged are those
// that an engine's log may tell instead.
func metricOf() (names map[string][2]string, logged []string) {
	return map[string][2]string{
		"webgpu_ledger": {"webgpu_ledger", "live_bytes"}, "weights": {"webgpu_ledger", "weights_bytes"},
		"kv_reserved": {"webgpu_ledger", "kv_reserved_bytes"},
		"kv_used":     {"webgpu_ledger", "kv_used_bytes"}, "workspaces": {"webgpu_ledger", "workspaces_bytes"},
		"unattributed": {"webgpu_ledger", "unattributed_bytes"},
		"js_heap":      {"heap_usage", "used_bytes"}, "array_buffers": {"heap_usage", "backing_storage_bytes"},
		"wasm":       {"wasm_memory", "memory_bytes"},
		"user_agent": {"user_agent_memory", "total_bytes"}, "engine_says": {"api_ps", "size_bytes"},
	}, []string{"weights", "kv_reserved", "kv_used", "workspaces"}
}

// metricAt is what was held at a phase's end, over all sources, in MiB. Where one that was read before gives no answer
// then, the sum is not known, unless it gave none later either and another of its role was read: it was replaced.
func (a *memoryAttempt) metricAt(method, name, phase string) float64 {
	_, end, _, ok := a.stretch(phase)
	if !ok {
		return math.NaN()
	}
	held, early, late, roles := map[int]float64{}, map[int]bool{}, map[int]bool{}, map[string]bool{}
	for _, m := range a.metrics {
		s := a.sources[m.source]
		switch {
		case s.Method != method || m.name != name:
		case m.edge == phase:
			held[m.source], roles[s.Role] = m.value, true
		case m.at < end:
			early[m.source] = true
		default:
			late[m.source] = true
		}
	}
	sum := 0.0
	for _, v := range held {
		sum += v
	}
	for id := range early {
		if _, there := held[id]; !there && (late[id] || !roles[a.sources[id].Role]) {
			return math.NaN()
		}
	}
	if len(held) == 0 {
		return math.NaN()
	}
	return sum / (1 << 20)
}

// behind is the last total PSS from a phase's end to the next one's begin.
func (a *memoryAttempt) behind(phase string) float64 {
	v := math.NaN()
	_, end, next, ok := a.stretch(phase)
	for _, t := range a.totals {
		if ok && t.method == "smaps_rollup" && t.at >= end && t.at < next && !math.IsNaN(t.pss) {
			v = t.pss
		}
	}
	return v
}

// where works out what a list of where memory is has under a name.
func (g *memoryAgain) where(list, name string) Figure {
	var f Figure
	names, logged := metricOf()
	metric := names[name]
	if slices.Contains(logged, name) && !g.methods["webgpu_ledger"] && g.methods["engine_log"] {
		metric[0] = "engine_log"
	}
	for _, l := range g.launches {
		at := func(phase string) float64 {
			return l.latest(phase, func(a *memoryAttempt) float64 {
				if name == "total_pss" {
					return a.behind(phase)
				}
				return a.metricAt(metric[0], metric[1], phase)
			})
		}
		switch {
		case list != "retained":
			f.keep(l.opener.id, at(list), name != "total_pss")
		case name == "total_pss":
			f.keep(l.opener.id, at("unload")-middle(l.opener.in("baseline", "smaps_rollup")), false)
		// they are there only while a model is
		case slices.Contains(logged, name), name == "unattributed", name == "engine_says":
		default:
			f.keep(l.opener.id, at("unload")-at("baseline"), true)
		}
	}
	f.conclude()
	if name == "kv_used" {
		f.Lo, f.Hi = math.NaN(), math.NaN() // it is calculated
	}
	return f
}

// highest are the highest RSS of the processes within phases: by role, by phase.
func (g *memoryAgain) highest() map[[2]string]Figure {
	out := map[[2]string]Figure{}
	for _, l := range g.launches {
		for _, phase := range []string{"baseline", "load", "warmup", "measure", "idle", "unload"} {
			most := map[string]float64{}
			for _, a := range l.having(phase) {
				last := map[int]float64{}
				for _, s := range a.samples {
					if s.edge == phase && !math.IsNaN(s.hwm) {
						last[s.source] = s.hwm
					}
				}
				for id, v := range last {
					most[a.sources[id].Role] = max(most[a.sources[id].Role], v)
				}
			}
			for role, v := range most {
				f := out[[2]string{role, phase}]
				f.keep(l.opener.id, v, false)
				out[[2]string{role, phase}] = f
			}
		}
	}
	for key, f := range out {
		f.conclude()
		out[key] = f
	}
	return out
}

// says is what the engine told of its set-up, in the first launch that did.
func (g *memoryAgain) says(key string) string {
	for _, a := range g.counted {
		if a.policy != nil {
			return strings.TrimSuffix(a.policy[key], "not told")
		}
	}
	return ""
}

// widened tells whether an engine computes on f32 where the file has another type.
func (g *memoryAgain) widened() bool {
	return g.says("weights_dtype") == "f32" && g.model.DType != "f32" && g.model.Parameters > 0
}

// constant is a figure that arithmetic alone gives.
func (g *memoryAgain) constant(mib float64) Figure {
	var f Figure
	for _, l := range g.launches {
		if mib > 0 {
			f.keep(l.opener.id, mib, true)
		}
	}
	f.conclude()
	f.Lo, f.Hi = math.NaN(), math.NaN()
	return f
}

// parts are the components, and which of them were read.
func (g *memoryAgain) parts() (parts map[string]Figure, wasRead map[string]bool) {
	parts, wasRead = map[string]Figure{}, map[string]bool{}
	for component, name := range map[string]string{"model_weights": "weights", "kv_cache": "kv_reserved",
		"kv_cache_used": "kv_used", "activations": "workspaces"} {
		f := g.where("measure", name)
		if len(f.Values) == 0 {
			f = g.where("load", name)
		}
		parts[component], wasRead[component] = f, len(f.Values) > 0
	}
	token := 2 * g.model.Layers * g.model.KVHeads * g.model.HeadDim * width(g.says("kv_dtype")) / (1 << 20)
	if !wasRead["model_weights"] {
		bytes := g.model.WeightsB
		if g.widened() {
			bytes = 4 * g.model.Parameters
		}
		parts["model_weights"] = g.constant(bytes / (1 << 20))
	}
	if !wasRead["kv_cache"] {
		context := g.model.Context
		if n, err := strconv.ParseFloat(g.says("context"), 64); err == nil {
			context = n
		}
		parts["kv_cache"] = g.constant(token * context)
	}
	if !wasRead["kv_cache_used"] {
		parts["kv_cache_used"] = g.constant(
			token * (middle(g.cell.Figures["tokens"].Values) + middle(g.cell.Figures["prompt_tokens"].Values)))
	}
	increase, total := g.whole()
	var framework, several Figure
	for _, l := range g.launches {
		id := l.opener.id
		if g.alone() {
			several.keep(id, 0, true)
		}
		if g.shared() {
			continue // of which memory would it be what is left?
		}
		left := increase.of(id) - (parts["model_weights"].of(id) - g.elsewhere(l))
		for _, name := range []string{"kv_cache", "activations"} {
			if v := parts[name].of(id); !math.IsNaN(v) {
				left -= v
			}
		}
		framework.keep(id, left, true)
	}
	framework.conclude()
	several.conclude()
	several.Lo, several.Hi = math.NaN(), math.NaN()
	parts["increase"], parts["total"], parts["framework_overhead"], parts["multi_gpu_overhead"] = increase, total,
		framework, several
	for _, name := range []string{"increase", "total", "framework_overhead"} {
		wasRead[name] = len(parts[name].Values) > 0 && !g.onGPU() // it is the host's memory that is foretold
	}
	return parts, wasRead
}

// holding counts the GPUs that hold memory for the engine's processes.
func (g *memoryAgain) holding() int {
	all := map[string]bool{}
	for _, a := range g.counted {
		for _, m := range a.metrics {
			if role, ok := strings.CutSuffix(m.name, ".gpu_memory_bytes"); ok && m.value > 0 &&
				a.sources[m.source].PID > 0 {
				all[role] = true
			}
		}
	}
	return len(all)
}

// whole is how the engine's processes grew, and their peak: in GPUs' memory where one computes, else by PSS, by sums of
// RSS where none was read.
func (g *memoryAgain) whole() (increase, total Figure) {
	if g.onGPU() {
		return g.gpuWhole()
	}
	if total = g.cell.Figures["peak_pss"]; len(total.Values) > 0 {
		increase = g.cell.Figures["memory_increase"]
		increase.conclude() // not at a stop's level: of parts nobody asked to know them well enough
		total.conclude()
		return increase, total
	}
	total = g.cell.Figures["peak_rss_sum"]
	total.conclude()
	for _, l := range g.launches {
		before := 0.0
		if l.opener.born() {
			var rss []float64
			begin, _, next, ok := l.opener.stretch("baseline")
			for _, t := range l.opener.totals {
				if ok && t.method != "smaps_rollup" && t.method != "vm_hwm" && t.at >= begin && t.at < next {
					rss = append(rss, t.rss)
				}
			}
			before = middle(rss)
		}
		increase.keep(l.opener.id, total.of(l.opener.id)-before, false)
	}
	increase.conclude()
	return increase, total
}

// kept is the PSS that processes held at the end of the unload beyond that at the end of the baseline, each by itself.
func (g *memoryAgain) kept(f *memoryFolder) Figure {
	type process struct {
		role  string
		pid   int
		start uint64
	}
	at := func(a *memoryAttempt, phase string) map[process]float64 {
		out := map[process]float64{}
		begin, _, next, ok := a.stretch(phase)
		for _, s := range a.samples {
			if ok && s.at >= begin && s.at < next && !math.IsNaN(s.pss) {
				of := a.sources[s.source]
				out[process{of.Role, of.PID, of.Start}] = s.pss
			}
		}
		return out
	}
	var out Figure
	for _, a := range g.counted {
		before, after := at(f.by[a.opener], "baseline"), at(a, "unload")
		if len(before) == 0 || len(after) == 0 {
			continue
		}
		more := 0.0
		for p, v := range after {
			more += v - before[p]
		}
		out.keep(a.id, more, false)
	}
	g.cell.conclude(&out)
	return out
}

// cached are tokens of prompts that were not computed: what an engine told, none where nothing was to be cached.
func (g *memoryAgain) cached() Figure {
	var out Figure
	for _, a := range g.counted {
		var values []float64
		for _, r := range a.requests {
			switch {
			case r.Phase != "measure":
			case r.Cached != nil && *r.Cached >= 0:
				values = append(values, float64(*r.Cached))
			case g.cache != "on":
				values = append(values, 0)
			}
		}
		out.keep(a.id, middle(values), false)
	}
	g.cell.conclude(&out)
	return out
}

// cost is what reading took.
func (g *memoryAgain) costs() map[string]Figure {
	var busy, each, cpu Figure
	for _, a := range g.counted {
		length, reading := 0.0, 0.0
		for _, phase := range []string{"load", "warmup", "measure"} {
			begin, end, _, ok := a.stretch(phase)
			if !ok {
				continue
			}
			length += float64(end - begin)
			for _, s := range a.samples {
				if s.at >= begin && s.at <= end {
					reading += float64(s.cost)
				}
			}
		}
		if length > 0 && reading > 0 {
			busy.keep(a.id, 100*reading/length, false)
		}
		if a.cost.Reads > 0 {
			each.keep(a.id, float64(a.cost.ReadNS)/float64(a.cost.Reads)/1000, false)
		}
		if a.cost.CPUNS > 0 {
			cpu.keep(a.id, 100*float64(a.cost.CPUNS)/float64(a.attempt.end-a.begin), false)
		}
	}
	for _, f := range []*Figure{&busy, &each, &cpu} {
		f.conclude()
	}
	return map[string]Figure{"sampler_busy": busy, "sampler_read": each, "sampler_cpu": cpu}
}

// memoryCellAgain is all that was worked out of a cell.
type memoryCellAgain struct {
	*memoryAgain
	costs            map[string]Figure
	retained, cached Figure
	highest          map[[2]string]Figure
	parts            map[string]Figure
	wasRead          map[string]bool
}

func (f *memoryFolder) all(cell *Cell) *memoryCellAgain {
	g := f.again(cell)
	out := &memoryCellAgain{memoryAgain: g, costs: g.costs(), retained: g.kept(f), cached: g.cached(),
		highest: g.highest()}
	out.parts, out.wasRead = g.parts()
	return out
}

// memories holds what a report says of memory against what was worked out again.
func (c *check) memories(text []byte) {
	c.Helper()
	var res memoryResult
	if err := json.Unmarshal(text, &res); err != nil {
		c.Fatal(err)
	}
	for i, cell := range res.Cells {
		label, all := c.res.Cells[i].Label, c.inside(i)
		g, again := all.memoryAgain, maps.Clone(all.costs)
		c.cells[i].Figures["retained_pss"], c.cells[i].Figures["cached_prompt_tokens"] = all.retained, all.cached
		for _, said := range cell.Sampler {
			c.either(label+": "+said.Name, said, again[said.Name])
			delete(again, said.Name)
		}
		c.lacks(label, again)
		if m := cell.Memory; m != nil {
			for list, figures := range map[string][]figure{"load": m.Load, "measure": m.Measure,
				"retained": m.Retained} {
				for _, said := range figures {
					where := kept(c.Work, "where "+list+" "+said.Name+c.cell(i),
						func() Figure { return g.where(list, said.Name) })
					c.either(label+": "+said.Name+" at "+list, said, where)
				}
			}
			highest := maps.Clone(all.highest)
			for _, p := range m.Peaks {
				for _, said := range p.Phases {
					key := [2]string{p.Process, said.Name}
					c.either(label+": highest RSS of "+p.Process+" in "+said.Name, said, highest[key])
					delete(highest, key)
				}
			}
			for key := range highest {
				c.Errorf("%s: the report has no highest RSS of %s in %s", label, key[0], key[1])
			}
		} else if len(all.highest) > 0 {
			c.Errorf("%s: the report has no peaks of processes", label)
		}
		c.risk(label, cell.Risk, g.risk)
		parts, wasRead := all.parts, all.wasRead
		if cell.Parts != nil {
			left := maps.Clone(parts)
			for _, said := range cell.Parts.Components {
				c.either(label+": component "+said.Name, said.figure, parts[said.Name])
				if len(parts[said.Name].Values) > 0 {
					method := g.by(said.Name, wasRead[said.Name])
					c.word(label+": component "+said.Name+", method", said.Method, method)
					c.word(label+": component "+said.Name+", origin", said.Origin, origin(said.Name, method))
					c.word(label+": component "+said.Name+", confidence", said.Confidence, trust(said.Name, method))
				}
				delete(left, said.Name)
			}
			c.lacks(label, left)
			beyond := g.beyond(parts)
			for _, said := range cell.Parts.Beyond {
				c.either(label+": "+said.Name, said.figure, beyond[said.Name])
				c.word(label+": "+said.Name+", method", said.Method,
					map[bool]string{false: "smaps_rollup", true: "difference"}[said.Name == "everything_else"])
				c.word(label+": "+said.Name+", confidence", said.Confidence, sureOf(said.Name))
				delete(beyond, said.Name)
			}
			c.lacks(label, beyond)
			c.word(label+": what the whole is of", cell.Parts.Of, wholeOf()[g.by("total", true)])
			c.word(label+": confidence", cell.Parts.Confidence, g.least(parts, wasRead))
		} else if len(g.counted) > 0 && c.foreign[c.res.Cells[i].Run] == nil {
			c.Errorf("%s: the report has no components", label)
		}
		if cell.Forecast != nil {
			c.foretold(label, cell.Forecast.Parts, g, parts, wasRead)
			c.recommended(label, cell.Forecast.Parts, cell.Forecast.Recommendations, g, parts)
		} else if len(g.memoryCell.foretold) > 0 {
			c.Errorf("%s: the report has no forecast", label)
		}
	}
}

// lacks tells of what was worked out again and a report doesn't have.
func (c *check) lacks(label string, left map[string]Figure) {
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if len(left[name].Values) > 0 {
			c.Errorf("%s: the report has no %s", label, name)
		}
	}
}

// either holds a figure against another, either of which may have no value.
func (c *check) either(what string, said figure, mine Figure) {
	c.Helper()
	switch known := len(mine.Values) > 0; {
	case said.Median == nil && !known:
	case said.Median == nil || !known:
		c.Errorf("%s: the report has %d values, and worked out again it has %v", what, len(said.Values), mine.Values)
	default:
		c.figure(what, said, mine)
		for k, v := range said.Values {
			if k < len(mine.launches) && v.Attempt != mine.launches[k] {
				c.Errorf("%s: value %d is of launch %d in the report, of %d worked out again", what, k+1, v.Attempt,
					mine.launches[k])
			}
		}
	}
}

// foretold holds a forecast and its errors against what was worked out again.
func (c *check) foretold(label string, said []memoryForetold, g *memoryAgain, parts map[string]Figure,
	wasRead map[string]bool) {
	_, old := g.memoryCell.foretold["total_used"] // framework and total meant something else then
	seen := map[string]bool{}
	for _, f := range said {
		what := label + ": forecast of " + f.Name
		seen[f.Name] = true
		p, told := g.memoryCell.foretold[f.Name]
		if told != (f.Best != nil) {
			c.Errorf("%s: there is one in the report is %v, in the journal %v", what, f.Best != nil, told)
			continue
		}
		if told {
			for k, v := range []*float64{f.Low, f.Best, f.High} {
				c.same(what, *v, p[k])
			}
		}
		mine := parts[f.Name]
		known := len(mine.Values) > 0 && wasRead[f.Name] && f.Name != "kv_cache_used" // which is calculated
		if known != (f.Measured != nil) {
			c.Errorf("%s: measured is %v in the report, and worked out again %v, by reading is %v", what, f.Measured,
				mine.Values, known)
			continue
		}
		if !known {
			continue
		}
		c.same(what+", measured", *f.Measured, mine.Median)
		c.same(what+", launches", float64(f.N), float64(len(mine.Values)))
		if c.present(what+", measured interval", f.Interval != nil, !math.IsNaN(mine.Lo)); f.Interval != nil &&
			!math.IsNaN(mine.Lo) {
			c.same(what+", measured, lower end", f.Interval.Lo, mine.Lo)
			c.same(what+", measured, upper end", f.Interval.Hi, mine.Hi)
		}
		if told {
			c.error(what, f, p, mine.Median)
		}
	}
	for name := range g.memoryCell.foretold {
		_, ours := parts[name]
		if ours && !seen[name] && (!old || name != "framework_overhead" && name != "total") {
			c.Errorf("%s: the report has no forecast of %s", label, name)
		}
	}
}

// error is a forecast's: in range where what was measured is no farther outside than 0.02 MiB, or a hundredth where one
// value was foretold.
func (c *check) error(what string, f memoryForetold, p [3]float64, measured float64) {
	off := p[1] - measured
	if f.Error == nil || f.Within == nil || (f.Percent == nil) != (measured <= 0) {
		c.Errorf("%s: the report has no error", what)
		return
	}
	c.rounded(what+", error", *f.Error, off)
	// A report's percent is of the error that it gives, to a byte.
	if f.Percent != nil && math.Abs(*f.Percent-100*off/measured) > 1e-6+100*5.1e-7/measured {
		c.Errorf("%s, error in percent is %v in the report, and %v worked out again", what, *f.Percent,
			100*off/measured)
	}
	slack := 0.02
	if p[0] == p[2] {
		slack = max(slack, math.Abs(measured)/100)
	}
	in := measured >= p[0]-slack && measured <= p[2]+slack
	verdict := "foretold too little"
	switch {
	case in:
		verdict = "within"
	case off > 0:
		verdict = "foretold too much"
	}
	c.compared++
	if *f.Within != in || f.Verdict != verdict {
		c.Errorf("%s: in range is %v (%s) in the report, and %v (%s) worked out again", what, *f.Within, f.Verdict,
			in, verdict)
	}
	variance, general := usual(f.Name)
	if c.present(what+", what is general", f.Expected != nil, general); f.Expected == nil || !general {
		return
	}
	c.same(what+", what is general, in percent", f.Expected.Variance, variance)
	percent := math.Abs(100 * off / measured)
	if c.present(what+", as expected", f.AsExpected != nil, measured > 0); f.AsExpected != nil &&
		math.Abs(percent-variance) > 1e-6 {
		if c.compared++; *f.AsExpected != (percent < variance) {
			c.Errorf("%s: as expected is %v in the report", what, *f.AsExpected)
		}
	}
}

// usual is how far calculations of a component are off in general, in percent.
func usual(component string) (percent float64, ok bool) {
	switch component {
	case "model_weights":
		return 2, true
	case "kv_cache":
		return 15, true
	case "activations":
		return 30, true
	case "framework_overhead":
		return 40, true
	case "total", "increase":
		return 10, true
	}
	return 0, false
}

// recommended holds of which components something is said: those whose launches don't reach what was foretold. And the
// numbers in it.
func (c *check) recommended(label string, said []memoryForetold, words []string, g *memoryAgain,
	parts map[string]Figure) {
	off := func(f memoryForetold) bool {
		p, told := g.memoryCell.foretold[f.Name]
		mine := parts[f.Name]
		if !told || f.Measured == nil || len(mine.Values) == 0 || f.Within == nil {
			return false
		}
		reaches := func(low, high float64) bool { return mine.Lo <= high && mine.Hi >= low } // false of no interval
		if !*f.Within {                                                                      // which was held before
			return !reaches(p[0], p[2])
		}
		return f.AsExpected != nil && !*f.AsExpected && g.sure[f.Name] && !reaches(p[1], p[1])
	}
	worst, most := "", 0.0
	for _, f := range said {
		switch f.Name {
		case "model_weights", "kv_cache", "activations", "framework_overhead", "multi_gpu_overhead":
			if p, told := g.memoryCell.foretold[f.Name]; told && f.Error != nil &&
				math.Abs(p[1]-parts[f.Name].Median) > most {
				most = math.Abs(p[1] - parts[f.Name].Median)
				worst = fmt.Sprintf("%s (%s MiB)", f.Title, tenths(p[1]-parts[f.Name].Median))
			}
		}
	}
	var want []string
	for _, f := range said {
		whole := slices.ContainsFunc(said, func(o memoryForetold) bool { return o.Name == "increase" && off(o) })
		if !off(f) || f.Name == "total" && whole {
			continue
		}
		best, measured := g.memoryCell.foretold[f.Name][1], parts[f.Name].Median
		by := tenths(best-measured) + " MiB"
		if measured > 0 {
			by = tenths(100*(best-measured)/measured) + " %"
		}
		want = append(want, fmt.Sprintf("%s: %s MiB were foretold and %s measured (%s): ", f.Title, fourDigits(best),
			fourDigits(measured), by))
	}
	c.same(label+": recommendations", float64(len(words)), float64(len(want)))
	for i, w := range words {
		if c.compared++; i < len(want) && !strings.HasPrefix(w, want[i]) {
			c.Errorf("%s: recommendation %q in the report, which should begin with %q", label, w, want[i])
		}
		if _, of, cause := strings.Cut(w, "most of it comes from "); cause && of != worst {
			c.Errorf("%s: the cause is %q in the report, and %q worked out again", label, of, worst)
		}
	}
}

// fourDigits writes a size as reports do in words.
func fourDigits(v float64) string {
	if v == 0 {
		return "0"
	}
	decimals := 3 - max(0, int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', max(0, decimals), 64)
}

// risk holds what a report says of whether memory fits against what was recorded.
func (c *check) risk(label string, said, recorded json.RawMessage) {
	var x, y any
	for of, into := range map[*any]json.RawMessage{&x: said, &y: recorded} {
		if len(into) == 0 {
			continue
		}
		if err := json.Unmarshal(into, of); err != nil {
			c.Fatal(err)
		}
	}
	if c.compared++; !reflect.DeepEqual(x, y) {
		c.Errorf("%s: the risk is %s in the report, and %s in the journal", label, said, recorded)
	}
}
