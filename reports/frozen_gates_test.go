package reports_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/reports"
)

// judged is a run's gate, held against a baseline run unless that is nil.
func judged(t *testing.T, rules string, run, base *record.Run) *compare.Result {
	t.Helper()
	parsed, err := plan.ParseGate([]byte(rules), "gate.json")
	if err != nil {
		t.Fatal(err)
	}
	res := compare.Runs(run)
	var before *compare.Result
	if base != nil {
		before = compare.Runs(base)
	}
	res.Gate = gate.Evaluate(parsed, res, before)
	return res
}

func gateJSON(t *testing.T, res *compare.Result) json.RawMessage {
	return json.RawMessage(rendered(t, func(w io.Writer) error { return reports.GateJSON(w, res.Gate) }))
}

const strict = `{"vs_baseline": {"decode_tps": "-5%", "peak_pss": "+3%", "ttft": {"change": "+10%", "level": "warn"},
	"load_time": "0%"}, "peak_pss": {"max": 900}, "decode_tps": [{"min": 20, "engine": "webllm"},
	{"min": 500, "engine": "llamacpp", "level": "warn"}],
	"parity": {"min_agreement": "100%"}}`

func TestFrozenGates(t *testing.T) {
	t.Parallel()
	all := map[string]any{}
	for name, of := range gatedRuns() {
		var base *record.Run
		if of.base != nil {
			base = comparetest.Run(t, "baseline", of.base...)
		}
		res := judged(t, of.rules, comparetest.Run(t, "run", of.now...), base)
		if res.Gate.Status != of.status {
			t.Errorf("%s: %s: %s", name, res.Gate.Status, res.Gate.Verdict)
		}
		all[name] = gateJSON(t, res)
	}
	frozen(t, "gates", all)
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

type gated struct {
	rules     string
	now, base []comparetest.Engine
	status    gates.Status
}

func gatedRuns() map[string]gated {
	type engines = []comparetest.Engine
	native := func(launches int, change func(*comparetest.Engine)) comparetest.Engine {
		e := comparetest.Native(launches)
		change(&e)
		return e
	}
	same := func(*comparetest.Engine) {}
	return map[string]gated{
		"equal":                      {strict, both(8, 0.03, 1, 1), both(9, 0.03, 1, 1), gates.Passed},
		"much worse":                 {strict, both(8, 0.02, 1.3, 1.3), both(7, 0.02, 1, 1), gates.Failed},
		"worse by less than is sure": {strict, both(7, 0.02, 1.06, 1), both(8, 0.02, 1, 1), gates.Warned},
		"worse within the tolerance": {`{"vs_baseline": {"decode_tps": "-50%", "peak_pss": "+40%"}}`,
			both(8, 0.02, 1.3, 1.2), both(7, 0.02, 1, 1), gates.Passed},
		"better": {strict, both(8, 0.02, 0.7, 0.8), both(8, 0.03, 1, 1), gates.Passed},
		"too few": {strict, both(3, 0.02, 1.3, 1.3), both(8, 0.02, 1, 1),
			gates.Inconclusive},
		"a few and many questions": {strict, both(6, 0.02, 1.3, 1.3), both(6, 0.02, 1, 1), gates.Failed},
		"limits": {
			`{"ttft": [{"max": 9}, {"max": 5}, {"max": 9.2, "level": "warn"}, {"min": 8, "max": 9.3},
				{"min": 30}, {"max": 1, "engine": "none"}],
			"peak_pss": {"max": 1, "level": "off"}, "baseline_pss": {"max": 1}, "latency": {"max": 60}}`,
			engines{native(8, func(e *comparetest.Engine) { e.Vary = 0.1 })},
			nil,
			gates.Failed,
		},
		"limits of few launches": {
			`{"level": "warn", "ttft": [{"max": 9}, {"max": 5}, {"max": 9.2}, {"min": 8, "max": 9.3}, {"min": 30}]}`,
			both(4, 0.1, 1, 1),
			nil,
			gates.Warned,
		},
		"few launches, and no baseline run": {`{"ttft": [{"max": 9.1}, {"max": 900}],
			"vs_baseline": {"decode_tps": "-5%"}, "peak_pss": {"max": 10, "level": "warn"}}`, both(4, 0.02, 1, 1), nil,
			gates.Failed},
		"one launch": {`{"ttft": {"max": 9, "level": "warn"}, "latency": {"min": 1}}`, both(1, 0.1, 1, 1),
			nil, gates.Warned},
		"no baseline run": {`{"vs_baseline": {"decode_tps": "-5%"}, "ttft": {"max": 1000}}`, both(8, 0.03, 1,
			1), nil, gates.Inconclusive},
		"none, only warned of": {
			`{"inconclusive": "warn", "vs_baseline": {"decode_tps": "-5%"}, "ttft": {"max": 1000}}`,
			both(8, 0.03, 1, 1),
			nil,
			gates.Warned,
		},
		"none, and off": {`{"inconclusive": "off", "vs_baseline": {"decode_tps": "-5%"}, "ttft": {"max": 1000}}`,
			both(8, 0.03, 1, 1), nil, gates.Passed},
		"none yet": {
			`{"no_baseline": "ok", "vs_baseline": {"decode_tps": "-5%"},
				"parity": {"min_agreement": "100%", "with": "baseline"}}`,
			both(8, 0.03, 1, 1),
			nil,
			gates.Passed,
		},
		"noise": {
			`{"vs_baseline": {"decode_tps": "-5%", "peak_pss": "+3%", "ttft": {"change": "+10%", "detect": "40%"}}}`,
			both(10, 0.15, 1.1, 1),
			both(7, 0.15, 1, 1),
			gates.Inconclusive,
		},
		"noise, and a lax gate": {`{"detect": "60%", "vs_baseline": {"decode_tps": "-5%"}}`, both(10, 0.15, 1, 1),
			both(9, 0.15, 1, 1), gates.Passed},
		"another model": {`{"vs_baseline": {"decode_tps": "-5%"}}`, engines{native(8,
			func(e *comparetest.Engine) { e.Cell.Model.SHA256 = "ffff" })}, engines{native(8, same)},
			gates.Inconclusive},
		"nothing can be judged": {`{"vs_baseline": {"decode_tps": "-5%"}}`, both(8, 0.03, 1, 1), nil,
			gates.Inconclusive},
		"gone and new": {`{"gone": "warn", "vs_baseline": {"decode_tps": "-5%"}}`, engines{native(8,
			same)}, engines{comparetest.Browser(8)}, gates.Inconclusive},
		"gone": {strict, both(8, 0.03, 1, 1)[1:], both(8, 0.03, 1, 1), gates.Failed},
		"new":  {strict, both(8, 0.03, 1, 1), both(8, 0.03, 1, 1)[1:], gates.Inconclusive},
		"failed launches": {`{"vs_baseline": {"decode_tps": "-5%"}}`,
			engines{native(9, func(e *comparetest.Engine) {
				e.Failing, e.Cut,
					e.Warmup = map[int]record.Class{3: record.OOM}, 5, true
			})},
			engines{native(8, same)}, gates.Failed},
		"one failed launch": {`{"latency": {"max": 1000}}`,
			engines{native(7, func(e *comparetest.Engine) { e.Failing = map[int]record.Class{3: record.OOM} })}, nil,
			gates.Failed},
		"words of one engine": {`{"parity": {"min_agreement": "100%", "engine": "webllm"}}`,
			engines{differing(comparetest.Browser(6)), native(6, same)}, nil, gates.Failed},
		"worse by the test alone": {`{"vs_baseline": {"decode_tps": "-5%"}}`, engines{slow(6, 1.09)},
			engines{slow(8, 1)}, gates.Warned},
		"worse by the interval alone": {`{"vs_baseline": {"decode_tps": "-5%"}}`, engines{slow(7, 1.09)},
			engines{slow(6, 1)}, gates.Warned},
		"another device": {`{"vs_baseline": {"decode_tps": "-5%"}, "latency": {"max": 1000}}`,
			engines{native(8, func(e *comparetest.Engine) { e.Device.Name = "another" })}, engines{native(8,
				same)}, gates.Inconclusive},
		"another type": {`{"vs_baseline": {"decode_tps": "-5%"}, "latency": {"max": 1000}}`,
			engines{native(8,
				func(e *comparetest.Engine) { e.Info.Policy = map[string]string{"kv_dtype": "f16"} })},
			engines{native(8, same)}, gates.Passed},
		"another cache": {`{"vs_baseline": {"decode_tps": "-5%"}, "latency": {"max": 1000}}`,
			engines{native(8, func(e *comparetest.Engine) { e.Cell.KVDType = "q8_0" })}, engines{native(8,
				same)}, gates.Passed},
		"versions": {strict, versions(8, 1, 1.5), versions(9, 1.5, 1), gates.Failed},
		"repetitions that share a launch": {`{"vs_baseline": {"decode_tps": "-5%"}, "ttft": {"max": 5}}`,
			engines{native(8, func(e *comparetest.Engine) { e.Reused, e.Cell.Reused = true, true })},
			engines{native(8, func(e *comparetest.Engine) { e.Reused, e.Cell.Reused = true, true })},
			gates.Failed},
		"programs outside": {`{"vs_baseline": {"peak_pss": "+3%", "decode_tps": "-5%"}}`, engines{native(8, same)},
			engines{native(8, func(e *comparetest.Engine) {
				e.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 46, Shared: 7}}
			})}, gates.Inconclusive},
		"other words": {`{"parity": {"min_agreement": "51%"}, "gone": "off"}`,
			engines{differing(comparetest.Browser(6)), native(6, same)}, nil, gates.Failed},
		"other words after enough": {`{"parity": {"min_agreement": "50%", "first_divergence": 33}}`,
			engines{differing(comparetest.Browser(6)), native(6, same)}, nil, gates.Passed},
		"other words too soon": {`{"parity": {"first_divergence": 34, "level": "warn"}}`,
			engines{differing(comparetest.Browser(6)), native(6, same)}, nil, gates.Warned},
		"other words than the baseline's": {`{"parity": {"min_agreement": "100%", "with": "baseline"}}`,
			engines{differing(comparetest.Browser(6)), native(6, same)}, both(6, 0.03, 1, 1), gates.Failed},
		"words of pieces": {`{"parity": {"min_agreement": "20%", "first_divergence": 3}}`,
			engines{native(6, same), comparetest.Served(6)}, nil, gates.Inconclusive},
	}
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
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	now := change(string(text))
	if now == string(text) {
		t.Fatalf("nothing is changed in %s", path)
	}
	if err := os.WriteFile(path, []byte(now), 0o600); err != nil {
		t.Fatal(err)
	}
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
	machine := func(fields string) pair { return pair{base: side{machine: fields}, unknown: all} }
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
	once := func(from, to string) func(string) string {
		return func(journal string) string {
			at := strings.LastIndex(journal, from)
			return journal[:at] + to + journal[at+len(from):]
		}
	}
	return map[string]pair{
		"nobody listened":               {},
		"quiet by a hair":               {base: side{machine: quiet}, now: side{machine: quiet}},
		"busy before the baseline":      {base: side{machine: busy}}, // it is slower all the same
		"as quick as on a busy machine": {base: side{machine: busy}, now: side{engine: quick}, unknown: times},
		"as quick as where some stole": both(stolen(1), func(e *comparetest.Engine) { quick(e); stolen(0)(e) },
			times...),
		"larger than it seems": both(processes(comparetest.Process{Role: "server", Before: 8,
			Loaded: 46}), processes(comparetest.Process{Role: "server", Before: 11, Loaded: 51, Shared: 10}),
			memory...),
		"busy before the run":           {now: side{machine: busy}, unknown: times},
		"busy before both":              {base: side{machine: busy}, now: side{machine: stealing}, unknown: times},
		"stolen from before the run":    {now: side{machine: stealing}, unknown: times},
		"of many cores it may run on 8": {now: side{machine: busy + `, "processor": {"logical_cores": 16}`}},
		"a load before the run":         {now: side{journal: load("4.5")}, unknown: times},
		"a load before the baseline":    {base: side{journal: load("4.01")}},
		"half a load":                   {base: side{journal: load("4")}, now: side{journal: load("4")}},
		"a load, and somebody listened": {base: side{journal: load("7"), machine: quiet}},
		"stolen while it ran":           both(stolen(0), stolen(1), times...),
		"stolen a little oftener":       both(stolen(1e6, 0, 0, 0, 0, 0, 0, 0), stolen(1, 1, 1, 0), times...),
		"stolen as likely by chance":    both(stolen(0, 0, 0, 1e6), stolen(0, 1, 0, 1)),
		"stolen a little, perhaps":      both(stolen(1e6, 0, 0, 0, 0, 0, 0, 0), stolen(0, 1)),
		"grown by less than it seems": both(
			processes(comparetest.Process{Role: "server", Before: 15, Loaded: 46, Shared: 14}),
			processes(comparetest.Process{Role: "server", Before: 8, Loaded: 50, Shared: 3}), memory...),
		"stolen while the baseline ran":  both(stolen(1), stolen(0)),
		"stolen from both":               both(stolen(0), stolen(0)),
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
		"two devices": {base: side{journal: once(`"name":"Example CPU 3.0 GHz"`, `"name":"Other"`)},
			unknown: all},
		"two versions": {now: side{journal: once(`"version":"b11434"`, `"version":"b2"`)},
			unknown: all},
		"another processor":     machine(`"cpu": "Other CPU"`),
		"more cores":            machine(`"cores": 16`),
		"less memory":           machine(fmt.Sprintf(`"memory_bytes": %d`, 22<<30)),
		"nearly as much memory": {base: side{machine: fmt.Sprintf(`"memory_bytes": %d`, 23<<30)}},
		"another governor":      machine(`"governor": "powersave"`),
		"another system":        {base: side{machine: `"os": "plan9"`}},
		// nobody says that it was none
		"a virtual machine beside none": {now: side{machine: `"virtual_machine": "kvm"`}},
		"a quota": {side{machine: `"limits": {"cgroup": "v2", "cpu_quota_cores": 2}`},
			side{machine: `"limits": {"cgroup": "v2"}`}, all},
		"turbo": {side{machine: `"processor": {"turbo": "on"}`},
			side{machine: `"processor": {"turbo": "off"}`}, all},
		"turbo untold": {side{machine: `"processor": {"turbo": "on"}`},
			side{machine: `"processor": {}`}, nil},
		"another kernel": {base: side{machine: `"kernel": "5.4"`}},
	}
}

// both are two engines on one device, the second so much slower and larger.
func both(launches int, vary, slower, larger float64) []comparetest.Engine {
	a, b := comparetest.Browser(launches), comparetest.Native(launches)
	a.Vary, b.Vary = vary, vary
	b.Token = time.Duration(float64(b.Token) * slower)
	b.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 46 * larger, Shared: 3}}
	return []comparetest.Engine{a, b}
}

// slow is one engine whose tokens take so much longer.
func slow(launches int, by float64) comparetest.Engine {
	e := comparetest.Native(launches)
	e.Load, e.Token = 100*time.Millisecond, time.Duration(float64(e.Token)*by)
	if by == 1 {
		e.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 20, Shared: 3}}
	}
	return e
}

// versions are two of one engine, which were asked for the same.
func versions(launches int, slower ...float64) []comparetest.Engine {
	older, newer := comparetest.Native(launches), comparetest.Native(launches)
	newer.Cell.ID, newer.Info.Version = 3, "b12000"
	for i, e := range []*comparetest.Engine{&older, &newer} {
		e.Token = time.Duration(float64(e.Token) * slower[i])
	}
	return []comparetest.Engine{older, newer}
}

// differing says something else from its 33rd token on.
func differing(e comparetest.Engine) comparetest.Engine {
	e.IDs = append(append([]int{}, e.IDs[:32]...), comparetest.IDs(65)[33:]...)
	return e
}

const (
	quiet = `"background": {"seconds": 1.04, "busy_cores": 0.8}`
	busy  = `"background": {"seconds": 1.04, "busy_cores": 0.91,
		"busiest": [{"name": "cc1plus", "processes": 3, "cores": 0.52}]}`
	stealing = `"background": {"seconds": 2, "busy_cores": 0.5, "stolen_cores": 0.4}`
)
