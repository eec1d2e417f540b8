package recount

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// What engines, servers, GPUs and processors tell, worked out again by rows of metrics.csv and the requests' own words.

type toldResult struct {
	Cells []struct {
		Reported, Server []figure
		Hardware         []struct {
			Kind, Role, Name, Method string
			Figures                  []figure
		}
	}
}

// told holds it against the folders.
func (c *check) told(text []byte) {
	var res toldResult
	if err := json.Unmarshal(text, &res); err != nil {
		c.Fatal(err)
	}
	for i, cell := range res.Cells {
		label, f := c.res.Cells[i].Label, c.memory[c.res.Cells[i].Run]
		all := kept(c.Work, "told"+c.cell(i), func() map[string]map[string]Figure {
			counted := f.again(c.cells[i]).counted
			out := f.hardware(counted)
			out["reported"], out["server"] = reported(counted), served(counted)
			return out
		})
		seen := map[string]bool{"reported": true, "server": true}
		c.each(label+": reported", cell.Reported, all["reported"])
		c.each(label+": the server's", cell.Server, all["server"])
		for _, h := range cell.Hardware {
			key := h.Kind + " " + h.Role + " by " + h.Method
			c.each(label+": "+key, h.Figures, all[key])
			seen[key] = true
		}
		for key, figures := range all {
			if !seen[key] && len(figures) > 0 {
				c.Errorf("%s: the report has nothing of %s", label, key)
			}
		}
	}
}

// each holds figures of a list against those worked out again: all of them, and no more.
func (c *check) each(label string, said []figure, mine map[string]Figure) {
	seen := map[string]bool{}
	for _, f := range said {
		if seen[f.Name] {
			c.Errorf("%s: %s is there twice", label, f.Name)
		}
		seen[f.Name] = true
		c.either(label+" "+f.Name, f, mine[f.Name])
	}
	for name, f := range mine {
		if len(f.Values) > 0 && !seen[name] {
			c.Errorf("%s: the report has no %s", label, name)
		}
	}
}

// reported are the engine's own figures: of a launch the median over its measured requests.
func reported(counted []*memoryAttempt) map[string]Figure {
	names := map[string]bool{}
	for _, a := range counted {
		for _, r := range a.measured() {
			for name := range r.Reported {
				names[name] = true
			}
		}
	}
	out := map[string]Figure{}
	for name := range names {
		var f Figure
		for _, a := range counted {
			var values []float64
			for _, r := range a.measured() {
				if v, ok := r.Reported[name]; ok {
					values = append(values, v)
				}
			}
			f.keep(a.id, middle(values), false)
		}
		f.conclude()
		out[name] = f
	}
	return out
}

// telling are the rows of an attempt by their source's number, in order of time, of sources and names that are wanted.
func (a *memoryAttempt) telling(name string, wanted func(memorySource) bool) map[int][]memoryMetric {
	out := map[int][]memoryMetric{}
	for _, m := range a.metrics {
		if m.name == name && wanted(a.sources[m.source]) {
			out[m.source] = append(out[m.source], m)
		}
	}
	for _, rows := range out {
		byTime(rows)
	}
	return out
}

func byTime(rows []memoryMetric) {
	slices.SortStableFunc(rows, func(a, b memoryMetric) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
}

// served are a server's words: what it counts since its start by how much it grew, over its sources; of the rest the
// highest.
func served(counted []*memoryAttempt) map[string]Figure {
	ofServers := func(s memorySource) bool { return s.Method == "server_metrics" }
	out := map[string]Figure{}
	for _, a := range counted {
		for _, m := range a.metrics {
			if ofServers(a.sources[m.source]) {
				out[m.name] = Figure{}
			}
		}
	}
	for name := range out {
		var f Figure
		grows := slices.Contains([]string{"preemptions_count", "prompt_tokens_count", "generated_tokens_count",
			"cached_prompt_tokens_count"}, name)
		for _, a := range counted {
			v, sum, all := math.NaN(), 0.0, a.telling(name, ofServers)
			for _, rows := range all {
				if grows {
					sum += grown(rows) // what is not known of one is not known of all
					continue
				}
				for _, m := range rows {
					v = higher(v, m.value)
				}
			}
			if grows && len(all) > 0 {
				v = sum
			}
			f.keep(a.id, v, false)
		}
		f.conclude()
		out[name] = f
	}
	return out
}

// grown is by how much a count went up; not known where it was read once, or began anew.
func grown(rows []memoryMetric) float64 {
	for i, m := range rows {
		if i > 0 && m.value < rows[i-1].value {
			return math.NaN()
		}
	}
	if len(rows) < 2 {
		return math.NaN()
	}
	return rows[len(rows)-1].value - rows[0].value
}

// device is a role as one method tells of it.
type device struct{ role, method string }

func (d device) is(s memorySource) bool { return s.Role == d.role && s.Method == d.method }

// rows are those of a device in order of time.
func (a *memoryAttempt) rows(d device, name string) []memoryMetric {
	var out []memoryMetric
	for _, m := range a.metrics {
		if m.name == name && d.is(a.sources[m.source]) {
			out = append(out, m)
		}
	}
	byTime(out)
	return out
}

// devices are those that any of the attempts has and that are wanted, as they came.
func devices(counted []*memoryAttempt, wanted func(memorySource) bool) []device {
	var out []device
	for _, a := range counted {
		ids := make([]int, 0, len(a.sources))
		for id := range a.sources {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range ids {
			d := device{a.sources[id].Role, a.sources[id].Method}
			if wanted(a.sources[id]) && d.role != "gpus" && !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

func ever(counted []*memoryAttempt, d device, names ...string) bool {
	return slices.ContainsFunc(counted, func(a *memoryAttempt) bool {
		return slices.ContainsFunc(names, func(name string) bool { return len(a.rows(d, name)) > 0 })
	})
}

// hardware has figures by kind, role and method.
func (f *memoryFolder) hardware(counted []*memoryAttempt) map[string]map[string]Figure {
	out := map[string]map[string]Figure{}
	gpus := devices(counted, func(s memorySource) bool { return s.PID == 0 && s.Method != "rapl" })
	gpus = slices.DeleteFunc(gpus, func(d device) bool {
		return !ever(counted, d, "memory_used_bytes", "utilization_gpu_percent", "power_watts", "temperature_celsius",
			"energy_joules")
	})
	by := map[string][]device{}
	for _, d := range gpus {
		by[d.method] = append(by[d.method], d)
		g := spreads(counted, d, map[string]string{"utilization": "utilization_gpu_percent", "power": "power_watts",
			"memory_used": "memory_used_bytes"})
		delete(g, "memory_used_max")
		over(counted, g, "memory_free_at_begin", d, "memory_free_bytes", func(a *memoryAttempt) float64 {
			rows := f.by[a.opener].rows(d, "memory_free_bytes")
			if len(rows) == 0 {
				return math.NaN()
			}
			return rows[0].value / mib
		})
		highest := func(name string) func(a *memoryAttempt) float64 {
			return func(a *memoryAttempt) float64 {
				v := math.NaN()
				for _, m := range a.rows(d, name) {
					v = higher(v, m.value)
				}
				return v
			}
		}
		over(counted, g, "memory_used_peak", d, "memory_used_bytes",
			func(a *memoryAttempt) float64 { return highest("memory_used_bytes")(a) / mib })
		over(counted, g, "temperature_max", d, "temperature_celsius", highest("temperature_celsius"))
		energies(counted, g, []device{d})
		out["gpu "+d.role+" by "+d.method] = g
	}
	for method, of := range by {
		if len(of) > 1 {
			whole := slices.DeleteFunc(slices.Clone(of), func(d device) bool { return strings.Contains(d.role, ".") })
			g := joined(counted, whole)
			held(counted, g, slices.DeleteFunc(slices.Clone(of), func(d device) bool {
				return slices.ContainsFunc(
					of, func(part device) bool { return strings.HasPrefix(part.role, d.role+".") })
			}))
			out["gpus gpus by "+method] = g
		}
	}
	zones := devices(counted, func(s memorySource) bool { return s.Method == "rapl" })
	for _, z := range zones {
		g := spreads(counted, z, map[string]string{"power": "power_watts"})
		energies(counted, g, []device{z})
		out["processor "+z.role+" by rapl"] = g
	}
	if len(zones) > 1 {
		out["processors cpus by rapl"] = joined(counted, zones)
	}
	processes(counted, out)
	return out
}

// over adds a figure with a value an attempt, where the device ever told what it is made of.
func over(counted []*memoryAttempt, g map[string]Figure, name string, d device, of string,
	value func(*memoryAttempt) float64) {
	if !ever(counted, d, of) {
		return
	}
	var f Figure
	for _, a := range counted {
		f.keep(a.id, value(a), false)
	}
	f.conclude()
	g[name] = f
}

// whileMeasured are the readings from the measurement's begin to the next phase's.
func (a *memoryAttempt) whileMeasured(d device, name string) []float64 {
	begin, _, next, ok := a.stretch("measure")
	var out []float64
	for _, m := range a.rows(d, name) {
		if ok && m.at >= begin && m.at < next {
			out = append(out, m.value)
		}
	}
	return out
}

// mean and deviation of all values.
func meanOf(values []float64) (mean, deviation float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / n
	}
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	return mean, math.Sqrt(deviation)
}

// spreads are mean, highest and deviation of readings while it was measured.
func spreads(counted []*memoryAttempt, d device, of map[string]string) map[string]Figure {
	g := map[string]Figure{}
	for what, name := range of {
		unit := 1.0
		if strings.HasSuffix(name, "_bytes") {
			unit = mib
		}
		over(counted, g, what+"_mean", d, name, func(a *memoryAttempt) float64 {
			mean, _ := meanOf(a.whileMeasured(d, name))
			return mean / unit
		})
		over(counted, g, what+"_stddev", d, name, func(a *memoryAttempt) float64 {
			_, deviation := meanOf(a.whileMeasured(d, name))
			return deviation / unit
		})
		over(counted, g, what+"_max", d, name, func(a *memoryAttempt) float64 {
			if values := a.whileMeasured(d, name); len(values) > 0 {
				return slices.Max(values) / unit
			}
			return math.NaN()
		})
	}
	return g
}

// energies add what devices took together while it was measured, and that by token.
func energies(counted []*memoryAttempt, g map[string]Figure, of []device) {
	if !slices.ContainsFunc(of, func(d device) bool { return ever(counted, d, "energy_joules", "power_watts") }) {
		return
	}
	var energy, each Figure
	for _, a := range counted {
		sum, tokens := 0.0, 0.0
		for _, d := range of {
			sum += a.took(d)
		}
		for _, r := range a.measured() {
			tokens += r.answered()
		}
		energy.keep(a.id, sum, false)
		if tokens > 0 {
			each.keep(a.id, sum/tokens, false)
		}
	}
	energy.conclude()
	each.conclude()
	g["energy"], g["energy_per_token"] = energy, each
}

// took is a device's energy in J: by its counter, where it was read twice; else under the line through readings of its
// power. What of the phase no readings lie around is as dear as the rest, where that is a twentieth at most.
func (a *memoryAttempt) took(d device) float64 {
	begin, end, _, ok := a.stretch("measure")
	if !ok || end <= begin {
		return math.NaN()
	}
	counter := a.rows(d, "energy_joules")
	rows := counter
	if len(counter) < 2 {
		counter, rows = nil, a.rows(d, "power_watts")
	}
	// The energy from the first reading until a time, and which time is the last that it is known for.
	until := func(at int64) float64 {
		sum := 0.0
		for i := 1; i < len(rows) && rows[i-1].at < at; i++ {
			p, q := rows[i-1], rows[i]
			if q.at == p.at {
				continue
			}
			share := math.Min(1, float64(at-p.at)/float64(q.at-p.at))
			if counter != nil {
				sum += share * (q.value - p.value)
				continue
			}
			stop := p.value + share*(q.value-p.value)
			sum += (p.value + stop) / 2 * share * float64(q.at-p.at) / 1e9
		}
		return sum
	}
	if len(rows) < 2 {
		return math.NaN()
	}
	from, to := max(begin, rows[0].at), min(end, rows[len(rows)-1].at)
	for i := 1; i < len(counter); i++ {
		if counter[i].value < counter[i-1].value && counter[i].at > begin && counter[i-1].at < end {
			return math.NaN()
		}
	}
	if known := float64(to-from) / float64(end-begin); known >= 0.95 {
		return (until(to) - until(from)) / known
	}
	return math.NaN()
}

// joined is what several devices took.
func joined(counted []*memoryAttempt, of []device) map[string]Figure {
	g := map[string]Figure{}
	all := func(name string) bool {
		return !slices.ContainsFunc(of, func(d device) bool { return !ever(counted, d, name) })
	}
	if len(of) < 2 || !all("power_watts") && !all("energy_joules") {
		return g
	}
	if all("power_watts") {
		over(counted, g, "power_mean", of[0], "power_watts", func(a *memoryAttempt) float64 {
			sum := 0.0
			for _, d := range of {
				mean, _ := meanOf(a.whileMeasured(d, "power_watts"))
				sum += mean
			}
			return sum
		})
	}
	energies(counted, g, of)
	return g
}

// rounds are the values of devices that were read one soon after another: within half of what lies between two readings
// of one.
func (a *memoryAttempt) rounds(of []device, name string) [][]float64 {
	var rows []memoryMetric
	each := int64(1e9)
	for _, d := range of {
		rows = append(rows, a.rows(d, name)...)
		for _, s := range a.sources {
			if d.is(s) && s.Every > 0 {
				each = min(each, s.Every)
			}
		}
	}
	byTime(rows)
	var out [][]float64
	for at := 0; at < len(rows); {
		var round []float64
		read := map[int]bool{}
		for begin := rows[at].at; at < len(rows) && !read[rows[at].source] && rows[at].at-begin <= each/2; at++ {
			read[rows[at].source] = true
			round = append(round, rows[at].value)
		}
		out = append(out, round)
	}
	return out
}

// held adds what GPUs held at the moment at which all held most.
func held(counted []*memoryAttempt, g map[string]Figure, of []device) {
	of = slices.DeleteFunc(of, func(d device) bool { return !ever(counted, d, "memory_used_bytes") })
	if len(of) < 2 {
		return
	}
	var sum, most, mean, deviation Figure
	for _, a := range counted {
		total, then := math.Inf(-1), []float64(nil)
		for _, round := range a.rounds(of, "memory_used_bytes") {
			now := 0.0
			for _, v := range round {
				now += v
			}
			if len(round) == len(of) && now > total {
				total, then = now, round
			}
		}
		if then == nil {
			continue
		}
		m, d := meanOf(then)
		sum.keep(a.id, total/mib, false)
		most.keep(a.id, slices.Max(then)/mib, false)
		mean.keep(a.id, m/mib, false)
		deviation.keep(a.id, d/mib, false)
	}
	for name, f := range map[string]Figure{"memory_used_sum": sum, "memory_used_max": most, "memory_used_mean": mean,
		"memory_used_stddev": deviation} {
		f.conclude()
		g[name] = f
	}
}

// processes are what an engine's processes held of GPUs' memory, by role, and together where there are several.
func processes(counted []*memoryAttempt, out map[string]map[string]Figure) {
	by := map[string][]device{}
	for _, d := range devices(counted, func(s memorySource) bool { return s.PID != 0 }) {
		by[d.method] = append(by[d.method], d)
	}
	for method, all := range by {
		found := 0
		for _, d := range all {
			if g := heldBy(counted, []device{d}); len(g) > 0 {
				found++
				out["process "+d.role+" by "+method] = g
			}
		}
		if found > 1 {
			out["process processes by "+method] = heldBy(counted, all)
		}
	}
}

func heldBy(counted []*memoryAttempt, of []device) map[string]Figure {
	told := map[string]bool{}
	for _, a := range counted {
		for _, m := range a.metrics {
			if slices.ContainsFunc(of, func(d device) bool { return d.is(a.sources[m.source]) }) {
				told[m.name] = true
			}
		}
	}
	parts := 0
	for name := range told {
		if strings.HasSuffix(name, ".gpu_memory_bytes") {
			parts++
		}
	}
	g := map[string]Figure{}
	for name := range told {
		figure := map[string]string{"gpu_memory_bytes": "gpu_memory_peak",
			"gpu_system_memory_bytes": "gpu_system_memory_peak"}[name]
		if role, ok := strings.CutSuffix(name, ".gpu_memory_bytes"); ok && (parts > 1 || !told["gpu_memory_bytes"]) {
			figure = role + ".gpu_memory_peak"
		}
		if figure == "" {
			continue
		}
		var f Figure
		for _, a := range counted {
			peak := math.NaN()
			for _, round := range a.rounds(of, name) {
				sum := 0.0
				for _, v := range round {
					sum += v
				}
				peak = higher(peak, sum)
			}
			f.keep(a.id, peak/mib, false)
		}
		f.conclude()
		g[figure] = f
	}
	return g
}
