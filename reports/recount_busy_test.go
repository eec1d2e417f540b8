//go:build !race

package reports_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/recount"
	"llmparity/reports"
)

// side is a run's folder as it was on a machine.
type side struct {
	engine func(*comparetest.Engine) // nil: as it is
	// fields of environment.json that it has beside those of all; one that is there takes the place of theirs
	machine string
	journal func(string) string // nil: as it is
}

func (s side) write(t *testing.T, name string, e comparetest.Engine) string {
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
	return dir
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
func folders(t *testing.T, base, now side) (was, is string) {
	quick, slow := comparetest.Native(8), comparetest.Native(7)
	quick.Vary, slow.Vary = 0.02, 0.02
	slow.Token, slow.TTFT, slow.Load = slow.Token*2, slow.TTFT*2, slow.Load*2
	slow.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 60, Shared: 3}}
	return base.write(t, "baseline", quick), now.write(t, "run", slow)
}

const strictest = `{"vs_baseline": {"decode_tps": "-5%", "ttft": "+10%", "load_time": "0%", "prefill_tps": "-1%", "peak_pss": "+3%", "memory_increase": "+3%"}}`

func gatedFolders(t *testing.T, base, now side) *gated {
	t.Helper()
	was, is := folders(t, base, now)
	rules, err := plan.ParseGate([]byte(strictest), "gate.json")
	if err != nil {
		t.Fatal(err)
	}
	g := &gated{rules: rules, again: recount.NewGate(t, strictest, recount.From(t, is), recount.From(t, was))}
	for dir, run := range map[string]**record.Run{was: &g.base, is: &g.run} {
		if *run, err = record.Open(dir); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// stolen are seconds of each repetition; what a launch took hangs on how long the test wrote it, so that only what is
// far apart, or nothing, is in one order always.
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

func untold(e *comparetest.Engine) { e.Stolen = nil }

// load writes the load average before the first launch.
func load(average string) func(string) string {
	return func(journal string) string { return strings.Replace(journal, `"load1":0.2`, `"load1":`+average, 1) }
}

const (
	quiet    = `"background": {"seconds": 1.04, "busy_cores": 0.8}`
	busy     = `"background": {"seconds": 1.04, "busy_cores": 0.91, "busiest": [{"name": "cc1plus", "processes": 3, "cores": 0.52}]}`
	stealing = `"background": {"seconds": 2, "busy_cores": 0.5, "stolen_cores": 0.4}`
)

// busyMachines are pairs of runs with what of their six questions is inconclusive.
func busyMachines() map[string]struct {
	base, now side
	unknown   []string
} {
	type pair = struct {
		base, now side
		unknown   []string
	}
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
		"stolen, of the baseline untold": both(untold, stolen(1)),
		"stolen, of the run untold":      both(stolen(0), untold),
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

// What a gate can't judge of machines that others used, or that are others, is worked out again.
func TestAGateOfABusyMachineIsThatOfTheRecord(t *testing.T) {
	for name, of := range busyMachines() {
		t.Run(name, func(t *testing.T) {
			g := gatedFolders(t, of.base, of.now)
			res := g.judged()
			var unknown []string
			for _, c := range res.Gate.Checks {
				if c.Status == compare.GateInconclusive {
					unknown = append(unknown, c.Figure)
				}
			}
			slices.Sort(unknown)
			if want := slices.Sorted(slices.Values(of.unknown)); !slices.Equal(unknown, want) {
				t.Errorf("unknown are %q, and should be %q: %+v", unknown, want, res.Gate.Checks)
			}
			g.check(t, t, res)
		})
	}
}

// Reports of two runs of which others moved one warn of it where the folders say so.
func TestWarningsOfBusyMachinesAreThoseOfTheRecord(t *testing.T) {
	for name, of := range busyMachines() {
		if !strings.Contains(name, "busy") && !strings.Contains(name, "load") && !strings.Contains(name, "stolen") &&
			name != "quiet by a hair" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			was, is := folders(t, of.base, of.now)
			severalAgain(t, was, is)
		})
	}
}

// severalAgain is reportAgain of several runs.
func severalAgain(t *testing.T, dirs ...string) {
	t.Helper()
	runs := openedAll(t, dirs)
	res := compare.Runs(runs...)
	page := rendered(t, func(w io.Writer) error { return reports.HTML(w, res, runs...) })
	recount.Check(t, []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, res) })), page, dirs...)
}

// A gate or a report that takes a machine's state for another is found out.
func TestWrongWordsOnBusyMachinesAreFound(t *testing.T) {
	stole := gatedFolders(t, side{engine: stolen(0)}, side{engine: stolen(1)})
	others := gatedFolders(t, side{}, side{machine: busy})
	alone := gatedFolders(t, side{}, side{})
	decode := func(r *compare.Result) *compare.GateCheck {
		return &r.Gate.Checks[slices.IndexFunc(
			r.Gate.Checks, func(c compare.GateCheck) bool { return c.Figure == figure.DecodeTPS })]
	}
	for _, c := range []struct {
		in       *gated
		says     string
		from, to string
	}{
		{stole, "which should have 0 behind", "and 0 %", "and 0.1 %"},
		{stole, "behind \"p = \"", "medians, p = ", "medians, p = 9"},
		{stole, "that something else decides it, worked out again: true", "significantly worse, but",
			"significantly worse:"},
		{others, "behind \"the run's machine was busy: others took \"", "the run's machine",
			"the baseline run's machine"},
		{others, "which should have 0.91", "took 0.91", "took 0.92"},
		{others, "which should have 8 behind", "of 8 cores", "of 16 cores"},
		{others, "which should have 1.04", "in 1.0 s", "in 2.0 s"},
		{alone, "worked out again: false", "; tolerance", "; significantly worse, but others were busy; tolerance"},
	} {
		res := c.in.judged()
		d := decode(res)
		now := strings.Replace(d.Why, c.from, c.to, 1)
		if now == d.Why {
			t.Errorf("%q has no %q", d.Why, c.from)
		}
		d.Why = now
		found := &deaf{TB: t}
		c.in.check(t, found, res)
		found.hears(t, c.says)
	}
	for of, status := range map[*gated]compare.GateStatus{stole: compare.GateFailed, others: compare.GateFailed,
		alone: compare.GateInconclusive} {
		res := of.judged()
		decode(res).Status = status
		found := &deaf{TB: t}
		of.check(t, found, res)
		found.hears(t, fmt.Sprintf("its status is %s", status))
	}
	wrongWarnings(t)
}

// wrongWarnings are of a report of two runs.
func wrongWarnings(t *testing.T) {
	was, is := folders(t, side{engine: stolen(0), machine: busy}, side{engine: stolen(1)})
	dirs := []string{was, is}
	work := recount.From(t, dirs...)
	runs := openedAll(t, dirs)
	page := rendered(t, func(w io.Writer) error { return reports.HTML(w, compare.Runs(runs...), runs...) })
	coded := func(list []compare.Warning, code string) int {
		at := slices.IndexFunc(list, func(w compare.Warning) bool { return w.Code == code })
		if at < 0 {
			t.Fatalf("there is no warning %s", code)
		}
		return at
	}
	ratio := func(r *compare.Result, name string) *compare.Ratio {
		all := r.Comparisons[0].Ratios
		return &all[slices.IndexFunc(all, func(x compare.Ratio) bool { return x.Figure == name })]
	}
	ttft := func(r *compare.Result) *compare.Figure {
		all := r.Cells[0].Figures
		return &all[slices.IndexFunc(all, func(f compare.Figure) bool { return f.Name == figure.TTFT })]
	}
	for says, change := range map[string]func(*compare.Result){
		"runs with a busy machine is": func(r *compare.Result) {
			at := coded(r.Warnings, compare.BusyMachine)
			r.Warnings = slices.Delete(r.Warnings, at, at+1)
		},
		"of the warning busy-machine: it says": func(r *compare.Result) {
			w := &r.Warnings[coded(r.Warnings, compare.BusyMachine)]
			w.Text = strings.Replace(w.Text, "0.91", "0.19", 1)
		},
		": ttft: there are 0 warnings busy-machine": func(r *compare.Result) { ttft(r).Warnings = nil },
		": ttft: of the warning busy-machine": func(r *compare.Result) {
			w := slices.Clone(ttft(r).Warnings)
			at := slices.IndexFunc(w, func(w record.Warning) bool { return w.Code == compare.BusyMachine })
			w[at].Text = strings.Replace(w[at].Text, "of 8", "of 4", 1)
			ttft(r).Warnings = w
		},
		"peak_pss: there are 1 warnings busy-machine": func(r *compare.Result) {
			r.Cells[0].Figures[0].Warnings = append(r.Cells[0].Figures[0].Warnings,
				record.Warning{Code: compare.BusyMachine})
		},
		"there are 0 warnings stolen-time": func(r *compare.Result) { ratio(r, figure.DecodeTPS).Warnings = nil },
		"there are 1 warnings stolen-time": func(r *compare.Result) {
			x := ratio(r, figure.PeakPSS)
			x.Warnings = append(x.Warnings, compare.Warning{Warning: record.Warning{Code: compare.StolenTime}})
		},
		"where time was stolen is": func(r *compare.Result) {
			x := ratio(r, figure.DecodeTPS)
			x.Warnings[coded(x.Warnings, compare.StolenTime)].Where = "baseline"
		},
		"of the warning stolen-time: it says": func(r *compare.Result) {
			x := ratio(r, figure.DecodeTPS)
			w := &x.Warnings[coded(x.Warnings, compare.StolenTime)]
			w.Text = strings.Replace(w.Text, "and 0 %", "and 1 %", 1)
		},
	} {
		res := compare.Runs(runs...)
		change(res)
		found := &deaf{TB: t}
		work.Check(found, []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, res) })), page)
		found.hears(t, says)
	}
}
