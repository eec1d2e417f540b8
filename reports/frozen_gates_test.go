package reports_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/bench/plan"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// judged is a run's gate, held against a baseline run unless that is nil.
func judged(t *testing.T, rules string, run, base *record.Run) *compare.Result {
	t.Helper()
	parsed, err := plan.ParseGate([]byte(rules), "gate.json")
	check.Err(t, err)
	res := compare.Runs(run)
	var before *compare.Result
	if base != nil {
		before = compare.Runs(base)
	}
	res.Gate = gate.Evaluate(parsed, res, before)
	return res
}

// What a gate cannot judge of machines that others used, or that are others.
func TestFrozenGatesOfBusyMachines(t *testing.T) {
	t.Parallel()
	all := map[string]any{}
	for name, of := range busyMachines() {
		was, is := folders(t, of.base, of.now)
		res := judged(t, strictest, is, was)
		var inconclusive []string
		why := map[string]string{}
		for _, c := range res.Gate.Checks {
			why[c.Name] = fmt.Sprintf("%s: %s", c.Status, c.Why)
			if c.Status == gates.Inconclusive {
				inconclusive = append(inconclusive, c.Figure)
			}
		}
		slices.Sort(inconclusive)
		if want := slices.Sorted(slices.Values(of.unknown)); !slices.Equal(inconclusive, want) {
			t.Errorf("%s: inconclusive are %q, want %q: %+v", name, inconclusive, want, res.Gate.Checks)
		}
		all[name] = why
	}
	frozen(t, "gates-of-busy-machines", all)
}

// Two runs, of which others moved one, are warned of.
func TestFrozenComparisonsOfBusyMachines(t *testing.T) {
	t.Parallel()
	was, is := folders(t, side{engine: stolen(0), machine: busy}, side{engine: stolen(1)})
	frozen(t, "busy-machine", compare.Runs(was, is), "warnings", "figures", "comparisons")
}

const strictest = `{"vs_baseline": {"decode_tps": "-5%", "ttft": "+10%", "load_time": "0%", "prefill_tps": "-1%",
	"peak_pss": "+3%", "memory_increase": "+3%"}}`

// side is a run's folder as it was on a machine.
type side struct {
	engine func(*comparetest.Engine) // nil: as it is
	// fields of environment.json that it has beside those of all; one that is there takes the place of theirs
	machine string
	journal func(string) string // nil: as it is
}

func (s side) write(t *testing.T, name string, e comparetest.Engine) *record.Run {
	t.Helper()
	if s.engine != nil {
		s.engine(&e)
	}
	dir := comparetest.Write(t, t.TempDir(), name, e)
	if s.machine != "" {
		rewrite(t, filepath.Join(dir, "environment.json"), func(text string) string {
			// the last of two of a name counts
			return strings.TrimSuffix(strings.TrimSpace(text), "}") + ", " + s.machine + "}"
		})
	}
	if s.journal != nil {
		rewrite(t, filepath.Join(dir, "journal.jsonl"), s.journal)
	}
	return comparetest.Open(t, dir)
}

func rewrite(t *testing.T, path string, change func(string) string) {
	t.Helper()
	text := check.Read(t, path)
	now := change(string(text))
	if now == string(text) {
		t.Fatalf("nothing is changed in %s", path)
	}
	check.Err(t, os.WriteFile(path, []byte(now), 0o600))
}

// folders are two runs, the second slower and larger.
func folders(t *testing.T, base, now side) (was, is *record.Run) {
	quick, slow := comparetest.Native(8), comparetest.Native(7)
	quick.Vary, slow.Vary = 0.02, 0.02
	slow.Token, slow.TTFT, slow.Load = slow.Token*2, slow.TTFT*2, slow.Load*2
	slow.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 60, Shared: 3}}
	return base.write(t, "baseline", quick), now.write(t, "run", slow)
}

// stolen are seconds of each repetition.
func stolen(seconds ...float64) func(*comparetest.Engine) {
	return func(e *comparetest.Engine) { e.Stolen = func(n int) float64 { return seconds[n%len(seconds)] } }
}

func processes(all ...comparetest.Process) func(*comparetest.Engine) {
	return func(e *comparetest.Engine) { e.Processes = all }
}

// quick takes back what makes a run slower and larger.
func quick(e *comparetest.Engine) {
	was := comparetest.Native(1)
	e.Token, e.TTFT, e.Load, e.Processes = was.Token, was.TTFT, was.Load, was.Processes
}

func unreported(e *comparetest.Engine) { e.Stolen = nil }

// load writes the load average before the first launch.
func load(average string) func(string) string {
	return func(journal string) string { return strings.Replace(journal, `"load1":0.2`, `"load1":`+average, 1) }
}

// sides are two runs, and which of a gate's six questions about them are inconclusive.
type sides struct {
	base, now side
	unknown   []string
}

func busyMachines() map[string]sides {
	type pair = sides
	times := []string{figure.DecodeTPS, figure.LoadTime, figure.PrefillTPS, figure.TTFT}
	all := append([]string{figure.Increase, figure.PeakPSS}, times...)
	memory := []string{figure.Increase, figure.PeakPSS}
	both := func(base, now func(*comparetest.Engine), unknown ...string) pair {
		return pair{side{engine: base}, side{engine: now}, unknown}
	}
	cached := func(tokens int) func(*comparetest.Engine) {
		return func(e *comparetest.Engine) {
			e.Cell.PromptCache = record.CacheOn
			e.Usage = func(u *record.Usage) { u.CachedTokens = tokens }
		}
	}
	served := func(e *comparetest.Engine) { e.Cell.Model.Format, e.Cell.Model.SHA256 = record.Served, "" }
	odd := func(e *comparetest.Engine) { e.Device.Class = "abacus" }
	return map[string]pair{
		"nobody listened":               {},
		"as quick as on a busy machine": {base: side{machine: busy}, now: side{engine: quick}, unknown: times},
		"as quick as where some stole": both(stolen(1), func(e *comparetest.Engine) { quick(e); stolen(0)(e) },
			times...),
		"larger than it seems": both(processes(comparetest.Process{Role: "server", Before: 8,
			Loaded: 46}), processes(comparetest.Process{Role: "server", Before: 11, Loaded: 51, Shared: 10}),
			memory...),
		"stolen from before the run":    {now: side{machine: stealing}, unknown: times},
		"of many cores it may run on 8": {now: side{machine: busy + `, "processor": {"logical_cores": 16}`}},
		"a load before the run":         {now: side{journal: load("4.5")}, unknown: times},
		"a load before the baseline":    {base: side{journal: load("4.01")}},
		"half a load":                   {base: side{journal: load("4")}, now: side{journal: load("4")}},
		"a load, and somebody listened": {base: side{journal: load("7"), machine: quiet}},
		"stolen a little oftener":       both(stolen(1e6, 0, 0, 0, 0, 0, 0, 0), stolen(1, 1, 1, 0), times...),
		"stolen as likely by chance":    both(stolen(0, 0, 0, 1e6), stolen(0, 1, 0, 1)),
		"stolen a little, perhaps":      both(stolen(1e6, 0, 0, 0, 0, 0, 0, 0), stolen(0, 1)),
		"grown by less than it seems": both(
			processes(comparetest.Process{Role: "server", Before: 15, Loaded: 46, Shared: 14}),
			processes(comparetest.Process{Role: "server", Before: 8, Loaded: 50, Shared: 3}), memory...),
		"stolen, of the baseline untold": both(unreported, stolen(1)),
		"stolen, of the run untold":      both(stolen(0), unreported),
		"stolen, and busy before": {base: side{engine: stolen(0), machine: busy}, now: side{engine: stolen(1)},
			unknown: times},
		"shared with programs outside": both(
			processes(comparetest.Process{Role: "server", Before: 21, Loaded: 46, Shared: 20}), nil, memory...),
		"shared by two of its own": both(
			processes(comparetest.Process{Role: "server", Before: 13, Loaded: 40, Shared: 12},
				comparetest.Process{Role: "worker", Before: 9, Loaded: 9, Shared: 8}), nil),
		"a process before the load": both(func(e *comparetest.Engine) { e.Resident = true }, nil,
			figure.Increase),
		"prompts from a cache":         both(cached(0), cached(3), figure.PrefillTPS, figure.TTFT),
		"the first token from a cache": both(cached(0), cached(1)),
		"prompts from both caches":     both(cached(3), cached(3)),
		"a load for each text": both(nil, func(e *comparetest.Engine) { e.Cell.PerGeneration = true },
			figure.LoadTime, figure.TTFT),
		"known by a name alone":      both(served, served, all...),
		"a device of no known class": both(odd, odd, all...),
		"nearly as much memory":      {base: side{machine: fmt.Sprintf(`"memory_bytes": %d`, 23<<30)}},
		// nobody says that it was none
		"a virtual machine beside none": {now: side{machine: `"virtual_machine": "kvm"`}},
		"a quota": {side{machine: `"limits": {"cgroup": "v2", "cpu_quota_cores": 2}`},
			side{machine: `"limits": {"cgroup": "v2"}`}, all},
		"turbo": {side{machine: `"processor": {"turbo": "on"}`},
			side{machine: `"processor": {"turbo": "off"}`}, all},
		"turbo untold": {side{machine: `"processor": {"turbo": "on"}`},
			side{machine: `"processor": {}`}, nil},
	}
}

const (
	quiet = `"background": {"seconds": 1.04, "busy_cores": 0.8}`
	busy  = `"background": {"seconds": 1.04, "busy_cores": 0.91,
		"busiest": [{"name": "cc1plus", "processes": 3, "cores": 0.52}]}`
	stealing = `"background": {"seconds": 2, "busy_cores": 0.5, "stolen_cores": 0.4}`
)
