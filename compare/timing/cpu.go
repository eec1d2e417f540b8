package timing

import (
	"maps"
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// CPU is the CPU time of the processes of a kind, such as renderer or server: medians over launches, in ms. What is not
// known is nil.
type CPU struct {
	Role     string   `json:"role"`
	Load     *float64 `json:"load_ms,omitempty"`
	Prefill  *float64 `json:"prefill_ms,omitempty"`
	PerToken *float64 `json:"per_token_ms,omitempty"`

	token evidence.Figure // PerToken's launches
}

// endedRole stands for processes that ended between two readings, whose kinds are not known.
const endedRole = "ended processes"

// fewest is the share of a request's tokens that must come after the reading at the first token. An engine that reports
// many tokens at once has too few.
const fewest = 0.25

// spent is CPU time by the role of processes, in ms.
type spent map[string]float64

func (s spent) sum() float64 {
	total := 0.0
	for _, v := range s {
		total += v
	}
	return total
}

// cpuOf has what a launch's parts used; nil: not known.
type cpuOf struct{ load, prefill, token spent }

// identity tells processes apart: pids are reused, and a process whose role changes has several sources.
type identity struct {
	pid   int
	start uint64
}

// readings are those of the CPU time of one process, in order.
type readings struct {
	role string
	all  []reading
}

type reading struct {
	ns        int64
	edge      record.Phase
	own, kids float64
}

// cpuReadings gathers the readings of an attempt's processes.
func cpuReadings(a *record.Attempt) map[identity]*readings {
	out := map[identity]*readings{}
	for _, m := range a.Metrics {
		s := a.Sources[m.Source]
		if s.Method != record.MethodCPUTime {
			continue
		}
		id := identity{s.PID, s.Start}
		r := out[id]
		if r == nil {
			r = &readings{}
			out[id] = r
		}
		r.role = s.Role
		if n := len(r.all); n == 0 || r.all[n-1].ns != m.NS {
			r.all = append(r.all, reading{ns: m.NS, edge: m.Edge})
		}
		last := &r.all[len(r.all)-1]
		switch m.Name {
		case record.CPUTime:
			last.own = m.Value
		case record.CPUTimeChildren:
			last.kids = m.Value
		}
	}
	return out
}

// moment finds the reading of a process at a moment; false: it had ended, or had not been read yet.
type moment func(*readings) (reading, bool)

// before finds the last reading at or before a time.
func before(ns int64) moment {
	return func(r *readings) (at reading, ok bool) {
		for _, x := range r.all {
			if x.ns <= ns {
				at, ok = x, true
			}
		}
		return at, ok
	}
}

// after finds the first reading at or after a time.
func after(ns int64) moment {
	return func(r *readings) (reading, bool) {
		at := slices.IndexFunc(r.all, func(x reading) bool { return x.ns >= ns })
		if at < 0 {
			return reading{}, false
		}
		return r.all[at], true
	}
}

// atEdge finds the reading at the end of a phase.
func atEdge(p record.Phase) moment {
	return func(r *readings) (reading, bool) {
		at := slices.IndexFunc(r.all, func(x reading) bool { return x.edge == p })
		if at < 0 {
			return reading{}, false
		}
		return r.all[at], true
	}
}

// during finds the first reading within a request.
func during(q *record.Request) moment {
	return func(r *readings) (reading, bool) {
		x, ok := after(q.SentNS + 1)(r)
		return x, ok && x.ns < q.ReturnedNS
	}
}

// between is the CPU time between two moments, the second of which is at the given time; nil: none was read. A process
// that was not read at the first one had not started.
//
// Processes that end in between have a last reading, and their parents count the time of children that they waited for.
// The larger of the two counts: no time counts twice.
func between(all map[identity]*readings, from, to moment, ns int64) spent {
	out, ended, waited, read := spent{}, 0.0, 0.0, false
	for _, r := range all {
		was, _ := from(r)
		if is, alive := to(r); alive {
			read = true
			out[r.role] += is.own - was.own
			waited += is.kids - was.kids
		} else if last, _ := before(ns)(r); last.ns > was.ns {
			ended += last.own + last.kids - was.own - was.kids
		}
	}
	if !read {
		return nil
	}
	if gone := max(ended, waited); gone > 0 {
		out[endedRole] += gone
	}
	return out
}

// cpuOfLaunch computes the CPU time of an attempt.
func cpuOfLaunch(a *record.Attempt) (out cpuOf) {
	opener := a.Launch()
	if p, ok := opener.Phase(record.Load); ok {
		out.load = between(cpuReadings(opener), before(p.BeginNS), atEdge(record.Load), p.EndNS)
	}
	requests := a.Measured()
	if len(requests) != 1 {
		return out // requests that run together share the processes
	}
	r, all := requests[0], cpuReadings(a)
	first := int64(0) // when the processes were read after the first token
	for _, of := range all {
		if x, ok := during(r)(of); ok {
			first = max(first, x.ns)
		}
	}
	early, late := 0, 0
	for i, t := range r.Tokens {
		switch {
		case t.NS > first:
			late++
		case i > 0:
			early++
		}
	}
	if first == 0 || late == 0 || float64(late) < fewest*float64(len(r.Tokens)) {
		return out
	}
	each := float64(r.Tokened()) / float64(len(r.Tokens)) // of a piece of text, its tokens
	out.prefill = between(all, before(r.SentNS), during(r), first)
	out.token = between(all, before(first), after(r.ReturnedNS), r.ReturnedNS)
	for role := range out.token {
		out.token[role] /= float64(late) * each
		if _, known := out.prefill[role]; known {
			out.prefill[role] -= out.token[role] * float64(early) * each
		}
	}
	return out
}

// readWhileGenerating is how long CPU time was read during requests, in ns.
func readWhileGenerating(a *record.Attempt) (ns int64) {
	for _, m := range a.Metrics {
		if m.Name != record.CPUTime || a.Sources[m.Source].Method != record.MethodCPUTime {
			continue
		}
		for _, r := range a.Measured() {
			if m.NS > r.SentNS && m.NS < r.ReturnedNS {
				ns += m.ReadNS
			}
		}
	}
	return ns
}

// CPUTime has the figures of CPU time, and the same by kind of process; nil: none was read.
func CPUTime(spec record.Cell, attempts []*record.Attempt) ([]evidence.Figure, []CPU) {
	figures := []evidence.Figure{evidence.New(figure.LoadCPU), evidence.New(figure.PrefillCPU),
		evidence.New(figure.TokenCPU)}
	by, tokens := map[string]*[3][]float64{}, map[string]*evidence.Figure{}
	for _, a := range attempts {
		if spec.PerGeneration {
			break
		}
		of := cpuOfLaunch(a)
		for i, part := range []spent{of.load, of.prefill, of.token} {
			if part == nil {
				continue
			}
			figures[i].Add(a.ID, max(0, part.sum()))
			for role, v := range part {
				if by[role] == nil {
					by[role], tokens[role] = &[3][]float64{}, new(evidence.New(figure.TokenCPU))
				}
				by[role][i] = append(by[role][i], max(0, v))
				if figures[i].Name == figure.TokenCPU {
					tokens[role].Add(a.ID, max(0, v))
				}
			}
		}
	}
	read := evidence.Has(attempts, record.MethodCPUTime)
	for i := range figures {
		f := &figures[i]
		f.Method = record.MethodCPUTime
		f.Blind = evidence.Blind(attempts, record.MethodCPUTime)
		switch {
		case spec.PerGeneration:
			f.Absent = "each generation starts a process, which ends before it can be read"
		case read && spec.Traffic != nil && f.Name != figure.LoadCPU:
			f.Absent = "requests that run together share the processes"
		case read && f.Name != figure.LoadCPU:
			f.Absent = "too few tokens came after the reading at the first token"
		}
	}
	var roles []CPU
	for _, role := range slices.Sorted(maps.Keys(by)) {
		of := by[role]
		roles = append(roles, CPU{role, middle(of[0]), middle(of[1]), middle(of[2]), *tokens[role]})
	}
	return figures, roles
}

// middle is the median; nil without a value.
func middle(values []float64) *float64 {
	m := stats.Median(values)
	if math.IsNaN(m) {
		return nil
	}
	return new(stats.Round(m, 6))
}
