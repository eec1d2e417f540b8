package gate_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/record"
)

// loaded makes a result of ten launches on a machine where decode says nothing and CPU time varies by 1%.
func loaded(seed uint64, cpu, decode float64, change func(*record.Run)) *compare.Result {
	s := comparetest.Series{Launches: 10, Cells: 1, CV: 0.5, Memory: 0.001, CPU: 0.01,
		Shift: map[string]float64{figure.TokenCPU: cpu, figure.DecodeTPS: decode}}
	run := s.Run(rand.New(rand.NewPCG(seed, 5)), "run")
	run.Meta.Against = "run" // launches took turns
	busyMachine(run)
	if change != nil {
		change(run)
	}
	return compare.Runs(run)
}

func on(class record.DeviceClass) func(*record.Run) {
	return func(r *record.Run) {
		for _, a := range r.Attempts {
			a.Events[0].Device = &record.Device{Class: class, Name: "Example"}
		}
	}
}

// withThreads is a run of an engine with so many threads on a machine of eight cores of which two are busy.
func withThreads(n string) func(*record.Run) {
	return func(r *record.Run) {
		for _, a := range r.Attempts {
			a.Events[1].Engine = &record.EngineInfo{Name: "engine", Version: "1",
				Policy: map[string]string{"threads": n}}
		}
	}
}

// cpuChecks are the checks of CPU time.
func cpuChecks(out *gates.Outcome) (all []gates.Check) {
	for _, c := range out.Checks {
		if figure.OfCPU(c.Figure) {
			all = append(all, c)
		}
	}
	return all
}

// Beside a check of decode, CPU time fails the gate if it is worse and never passes it.
func TestCPUTimeBesideSpeed(t *testing.T) {
	const speed = "vs_baseline: {decode_tps: -5%}"
	for name, c := range map[string]struct {
		gate        string
		cpu, decode float64
		change      func(*record.Run)
		status      gates.Status
		checks      int // of CPU time
	}{
		"equal":                       {speed, 1, 1, nil, gates.Inconclusive, 1},
		"more work":                   {speed, 1.2, 1, nil, gates.Failed, 1},
		"more work, software adapter": {speed, 1.2, 1, on(record.SoftwareAdapter), gates.Failed, 1},
		"more work on a GPU":          {speed, 1.2, 1, on(record.GPU), gates.Inconclusive, 0},
		"more work, unknown device":   {speed, 1.2, 1, on(""), gates.Inconclusive, 0},
		"more work, spinning threads": {speed, 1.2, 1, withThreads("7"), gates.Inconclusive, 0},
		"more work, enough cores":     {speed, 1.2, 1, withThreads("6"), gates.Failed, 1},
		"more work, can only warn":    {"vs_baseline: {decode_tps: {change: -5%, level: warn}}", 1.2, 1, nil, gates.Warned, 1},
		"more work, switched off": {"vs_baseline: {decode_tps: -5%, cpu_per_token_ms: {change: +5%, level: off}}", 1.2, 1, nil,
			gates.Inconclusive, 0},
		"a larger tolerance":    {"vs_baseline: {decode_tps: -5%, cpu_per_token_ms: +30%}", 1.2, 1, nil, gates.Inconclusive, 1},
		"more work, more speed": {speed, 1.2, 1.0 / 50, nil, gates.Warned, 1},
		"a gate without speed":  {"vs_baseline: {peak_pss_mb: +3%}", 1.2, 1, nil, gates.Passed, 0},
	} {
		out := gate.Evaluate(parse(t, c.gate), loaded(1, c.cpu, c.decode, c.change), loaded(2, 1, 1, c.change))
		if out.Status != c.status || len(cpuChecks(out)) != c.checks {
			t.Errorf("%s: %s, %d checks of CPU time; want %s, %d\n%+v", name, out.Status, len(cpuChecks(out)), c.status,
				c.checks, out.Checks)
		}
	}
}

// A check of CPU time alone fails, and passes nothing.
func TestCPUTimeAlonePassesNothing(t *testing.T) {
	for text, want := range map[string]struct {
		cpu    float64
		change func(*record.Run)
		status gates.Status
		why    string
	}{
		"vs_baseline: {cpu_per_token_ms: +5%}":                   {1, nil, gates.Inconclusive, "check decode_tps, too"},
		"vs_baseline: {cpu_per_token_ms: +5%, peak_pss_mb: +3%}": {1, nil, gates.Inconclusive, "check decode_tps, too"},
		"vs_baseline: {cpu_per_token_ms: +6%}":                   {1.3, nil, gates.Failed, ""},
		"vs_baseline: {cpu_per_token_ms: +7%}":                   {1.3, on(record.GPU), gates.Inconclusive, "computes on the CPU"},
		"vs_baseline: {cpu_per_token_ms: +8%}":                   {1.3, withThreads("8"), gates.Inconclusive, "spin"},
		"cpu_per_token_ms: {max: 2}":                             {1, on(record.GPU), gates.Inconclusive, "computes on the CPU"},
		"cpu_per_token_ms: {max: 20}":                            {1, nil, gates.Inconclusive, "check decode_tps, too"},
	} {
		out := gate.Evaluate(parse(t, text), loaded(3, want.cpu, 1, want.change), loaded(4, 1, 1, want.change))
		all := cpuChecks(out)
		if out.Status != want.status || len(all) != 1 || !strings.Contains(all[0].Why, want.why) {
			t.Errorf("%s: %s, want %s: %+v", text, out.Status, want.status, all)
		}
	}
}

// Threads that spin are named wherever CPU time was read.
func TestSpinningThreadsAreNamed(t *testing.T) {
	named := func(n string) bool {
		for _, w := range loaded(5, 1, 1, withThreads(n)).Warnings {
			if w.Code == "spinning-threads" {
				return strings.Contains(w.Text, n+" threads, but 6 of 8 cores were free")
			}
		}
		return false
	}
	if !named("7") || named("6") || named("1") {
		t.Errorf("7 threads: %v, 6: %v, 1: %v; 6 cores are free", named("7"), named("6"), named("1"))
	}
}

// processes are results of twelve launches on a busy machine: it makes both kinds of processes of a launch slower, by
// 13% more in some launches than in others, and speeds say nothing.
func processes(side uint64, renderer, gpu float64) (out []*compare.Result) {
	for n := range uint64(12) {
		r := rand.New(rand.NewPCG(n, side))
		run := comparetest.Series{Launches: 12, Cells: 1, CV: 0.5, Memory: 0.001, CPU: 0.01}.Run(r, "run")
		run.Meta.Against = "run"
		busyMachine(run)
		for _, a := range run.Attempts {
			q, busy := a.Requests[0], 1+0.13*r.NormFloat64()
			a.Metrics = nil
			for source, ms := range []float64{5 * renderer, 7 * gpu} {
				a.Sources[source] = record.Source{Role: []string{"renderer", "gpu-process"}[source],
					Method: record.MethodCPUTime, PID: 7 + source, Start: 1}
				used := ms * busy * (1 + 0.03*r.NormFloat64()) * float64(len(q.Tokens)-1)
				for ns, value := range map[int64]float64{q.SentNS - 1: 300, q.Tokens[0].NS + 1: 340,
					q.ReturnedNS + 1: 340 + used} {
					a.Metrics = append(a.Metrics,
						record.MetricRow{Source: source, NS: ns, Name: record.CPUTime, Value: value})
				}
			}
			slices.SortFunc(a.Metrics, func(x, y record.MetricRow) int { return cmp.Compare(x.NS, y.NS) })
		}
		out = append(out, compare.Runs(run))
	}
	return out
}

// What one kind of processes adds is seen where the machine makes the sum too noisy. Equal builds, and builds that move
// work from one process to the other, do not fail by it.
func TestOneProcessThatComputesMoreFailsTheGate(t *testing.T) {
	g, base := parse(t, "vs_baseline: {decode_tps: -5%}"), processes(1, 1, 1)
	for name, c := range map[string]struct{ renderer, gpu, least, most float64 }{
		"equal":                      {1, 1, 0, 0.01},
		"the renderer computes more": {1.35, 1, 0.85, 1},
		"work moves":                 {1.35, 0.75, 0, 0.02},
	} {
		failed := outcomes(g, base, processes(2, c.renderer, c.gpu))[gates.Failed]
		if failed < c.least || failed > c.most {
			t.Errorf("%s: %.1f%% fail, want %.0f to %.0f%%", name, 100*failed, 100*c.least, 100*c.most)
		}
	}
	out := gate.Evaluate(g, processes(3, 1.35, 1)[1], base[0])
	if w := out.Worst(); w.Part != "renderer" || w.Percent == nil || *w.Percent < 8 || *w.Percent > 22 ||
		!strings.Contains(w.Why, "of the CPU time of all processes") || strings.Count(w.Why, "launch by launch") != 1 {
		t.Errorf("%+v", out.Worst())
	}
}
