package gate_test

import (
	"math/rand/v2"
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
