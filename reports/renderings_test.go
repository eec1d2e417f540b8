package reports_test

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/parity"
	"llmparity/internal/gates"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports"
	"llmparity/reports/reportstest"
)

// rendering is a result with something of its own to show.
type rendering struct {
	res  *compare.Result
	runs []*record.Run
}

// renderings are all cases, and results of what they lack.
func renderings(t *testing.T) map[string]rendering {
	t.Helper()
	of := func(runs ...*record.Run) rendering { return rendering{compare.Runs(runs...), runs} }
	out := map[string]rendering{}
	for name, runs := range cases(t) {
		out[name] = of(runs...)
	}
	out["reading-missing"] = of(withoutReading(ownCase(t, "inside")[0]))
	out["gpus"] = of(onTwoGPUs(t))
	out["server"] = of(talkative(t))
	out["gate"] = gatedResult(t)
	out["scores"] = of(parted(t))
	out["checked"] = of(comparetest.Run(t, "checked", checkedPair()...))
	web := comparetest.Browser(1)
	web.IDs[6] = 511
	out["no-scores"] = of(comparetest.Run(t, "plain", web, comparetest.Native(1)))
	out["traffic"] = of(comparetest.Run(t, "load", loaded(6)...))
	aimless := comparetest.Mixed(comparetest.Native(1), 1, 2, 24, 2)
	aimless.Cell.Traffic.Goal = nil
	out["no-goal"] = of(comparetest.Run(t, "mix", aimless))
	out["machine"] = of(comparetest.Run(t, "desk", comparetest.Native(6)))
	out["machine"].runs[0].Environment = desk()
	out["machine"] = of(out["machine"].runs...)
	o := compare.Defaults()
	o.AllowDifferent = true
	run := comparetest.Run(t, "x", comparetest.Browser(8), comparetest.Native(8))
	out["not-alike"] = rendering{compare.With(o, run), []*record.Run{run}}
	out["grouped"] = grouped(t)
	busy := []*record.Run{comparetest.Run(t, "default", comparetest.Native(8)),
		comparetest.Run(t, "default", comparetest.Native(8))}
	busy[0].Dir, busy[1].Dir = "/srv/measurements/of/november/first", "/srv/measurements/of/november/second"
	busy[1].Environment.Background = &record.Background{Seconds: 1, Cores: 1.5}
	out["busy"] = of(busy...)
	out["trend"] = of(later(t))
	out["forms"] = of(forms(t, 0.02))
	out["matrix"] = of(comparetest.Run(t, "matrix", comparetest.Matrix()...))
	out["forms-broken"] = of(forms(t, 0.02, 102))
	return out
}

func rendered(t *testing.T, render func(io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	check.Err(t, render(&b))
	return b.String()
}

func pageOf(t *testing.T, res *compare.Result, runs ...*record.Run) string {
	t.Helper()
	return rendered(t, func(w io.Writer) error { return colours.HTML(w, res, runs...) })
}

func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// Every format has the warnings, in its own way of writing. Of the end of a run only the gravest are part.
func TestEveryFormatHasEveryWarning(t *testing.T) {
	runs := cases(t, "mixed")["mixed"]
	res := compare.Runs(runs...)
	if len(res.Warnings) < 4 {
		t.Fatalf("the made-up run should have warnings: %v", res.Warnings)
	}
	texts := map[string]string{"page": pageOf(t, res, runs...)}
	for name, render := range formats {
		// The terminal's end of a run has the gravest. Bencher's format has no place for any.
		if name != "terminal" && name != "Bencher" && !strings.HasPrefix(name, "gate") {
			texts[name] = rendered(t, func(w io.Writer) error { return render(w, res) })
		}
	}
	for _, name := range []string{"Markdown", "llama-bench"} {
		texts[name] = strings.Join(reportstest.Lines(t, "<body>"+reportstest.AsHTML(t, texts[name]), ""), "\n")
	}
	for name, text := range texts {
		text = words(html.UnescapeString(text))
		for _, w := range res.Warnings {
			if !strings.Contains(text, words(w.Text)) {
				t.Errorf("%s does not have %q", name, w.Text)
			}
		}
	}
}

// formats has all but the page, which needs the runs, too.
var formats = map[string]func(io.Writer, *compare.Result) error{
	"terminal": reports.Table, "details": reports.Details, "Markdown": reports.Markdown, "JUnit": reports.JUnit,
	"benchstat": reports.Benchstat, "JSON": reports.ResultJSON, "Bencher": reports.Bencher,
	"smaller": reports.SmallerIsBetter, "bigger": reports.BiggerIsBetter,
	"llama-bench": reports.LlamaBench, "llama-bench JSONL": reports.LlamaBenchJSONL,
	"gate terminal": ofGate(reports.GateTable),
	"gate Markdown": ofGate(reports.GateMarkdown), "gate JUnit": ofGate(reports.GateJUnit)}

func ofGate(render func(io.Writer, *gates.Outcome) error) func(io.Writer, *compare.Result) error {
	return func(w io.Writer, res *compare.Result) error { return render(w, res.Gate) }
}

// inGolden lists, for each result, the formats and page sections in its golden file: those with something of its own.
var inGolden = map[string][]string{
	"alone": {"terminal"}, "busy": {"terminal", "ratios"}, "empty": {"terminal", "Markdown", "page", "JUnit"},
	"few": {"terminal", "page", "benchstat", "Bencher", "smaller", "bigger", "llama-bench", "llama-bench JSONL"},
	"predicted": {"terminal", "details", "Markdown", "risk", "components",
		"forecast",
		"JUnit"},
	"forms": {"terminal", "answer", "quality"}, "forms-broken": {"terminal", "Markdown", "quality"},
	"gate":    {"terminal", "Markdown", "gate", "JUnit", "gate terminal", "gate Markdown", "gate JUnit"},
	"gpus":    {"terminal", "hardware"},
	"grouped": {"terminal", "Markdown", "ratios"}, "hostile": {"terminal", "details", "Markdown", "page", "JUnit",
		"benchstat", "Bencher", "smaller", "bigger", "llama-bench", "llama-bench JSONL"},
	"inside": {"terminal", "details"}, "lost": {"terminal", "JUnit"}, "machine": {"identity", "environment"},
	"matrix":  {"terminal", "Markdown", "support"},
	"mixed":   {"terminal", "Markdown", "answer", "timeline", "memory", "warnings", "JUnit", "benchstat"},
	"no-goal": {"traffic"}, "no-scores": {"parity"}, "not-alike": {"terminal", "ratios"},
	"reading-missing": {"details", "breakdown"}, "same-device": {"terminal", "speed"},
	"checked": {"terminal", "answer", "parity", "warnings", "JUnit"},
	"scores":  {"terminal", "parity"}, "served": {"terminal", "details", "summary"}, "server": {"server"},
	"traffic": {"traffic"}, "trend": {"terminal", "summary"},
}

// checkedPair are two engines that generate the same tokens. The reference implementation refutes the scores of one.
func checkedPair() []comparetest.Engine {
	web, llama := comparetest.Browser(6), comparetest.Native(6)
	right := func(int, int) float64 { return 0 }
	web.Checked = comparetest.Scores(func(position, rank int) float64 {
		if position == 50 && rank == 19 {
			return 0.07
		}
		return 0
	})
	llama.Checked, llama.Anchored = comparetest.Scores(right), comparetest.Scores(right)
	web.Check.Arithmetic, llama.Check.Arithmetic = []string{"float32"}, []string{"float32"}
	llama.Check.Anchor = &record.Anchor{SHA256: llama.Cell.Model.SHA256,
		Yardsticks: map[string]float64{"float32": 1e-5}}
	return []comparetest.Engine{web, llama}
}

// What formats for people say, to the letter. No name of others becomes an element of a page.
func TestRenderings(t *testing.T) {
	t.Parallel()
	all := renderings(t)
	if len(all) != len(inGolden) {
		t.Errorf("%d results, and golden files of %d", len(all), len(inGolden))
	}
	for name, r := range all {
		page := pageOf(t, r.res, r.runs...)
		document := rendered(t, func(w io.Writer) error { return reports.Markdown(w, r.res) })
		reportstest.Lines(t, "<body>"+reportstest.AsHTML(t, document), "") // no name has become an element
		golden(t, "renderings/"+name+".txt", func(w io.Writer) error {
			for _, what := range inGolden[name] {
				render := formats[what]
				if render == nil {
					render = func(w io.Writer, _ *compare.Result) error {
						if what == "page" {
							what = ""
						}
						return printLines(w, reportstest.Lines(t, page, what))
					}
				}
				fmt.Fprintf(w, "==== %s\n", what)
				if err := render(w, r.res); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func printLines(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// withoutReading is a run one of whose launches lacks a figure of the inside.
func withoutReading(run *record.Run) *record.Run {
	a := run.Attempts[1]
	at := slices.IndexFunc(a.Metrics,
		func(m record.MetricRow) bool { return m.Name == "used_bytes" && m.Edge == record.Load })
	a.Metrics = slices.Delete(slices.Clone(a.Metrics), at, at+1)
	return run
}

// metric adds a reading every 50 ms from the attempt's first phase to its last.
func metric(a *record.Attempt, source int, name string, value float64) {
	last := a.Phases[len(a.Phases)-1]
	for at := a.Phases[0].BeginNS; at <= last.EndNS; at += int64(50 * time.Millisecond) {
		a.Metrics = append(a.Metrics, record.MetricRow{Source: source, NS: at, Name: name, Value: value})
	}
}

// onTwoGPUs has what each holds, what both do, what a process holds of them, and a processor's energy.
func onTwoGPUs(t *testing.T) *record.Run {
	t.Helper()
	run := comparetest.Run(t, "gpu", comparetest.Native(2))
	run.Environment.GPUs = []record.GPUInfo{{Role: "gpu0", Name: "Example <9000>", Method: "nvml"},
		{Role: "gpu1", Name: "Example <9000>", Method: "nvml"}}
	for _, a := range run.Attempts {
		for i, s := range []record.Source{{Role: "gpu0", Method: "nvml", Blind: "which process"},
			{Role: "gpu1", Method: "nvml"},
			{Role: "server", Method: "nvml_process", PID: 4000}, {Role: "cpu0", Method: "rapl"}} {
			s.Every = 50 * time.Millisecond
			a.Sources[90+i] = s
		}
		for i := range 2 {
			metric(a, 90+i, "memory_used_bytes", float64(i+1)*1000*record.MiB)
			metric(a, 90+i, "memory_free_bytes", 5000*record.MiB)
			metric(a, 90+i, "power_watts", 125)
		}
		metric(a, 92, "gpu_memory_bytes", 777*record.MiB)
		metric(a, 93, "power_watts", 33)
	}
	return run
}

// talkative has a server that says something of itself.
func talkative(t *testing.T) *record.Run {
	t.Helper()
	run := comparetest.Run(t, "served", comparetest.Served(1))
	a := run.Attempts[0]
	a.Sources[99] = record.Source{Role: "server", Method: "server_metrics", Sees: "its own word & no more",
		Blind: "what it is silent about"}
	for i, v := range []float64{0.125, 0.375, 0.25} {
		a.Metrics = append(a.Metrics, record.MetricRow{Source: 99, NS: int64(i), Name: "kv_cache_usage_ratio",
			Value: v})
	}
	return run
}

// gatedResult has a check of each status, and names that are hostile.
func gatedResult(t *testing.T) rendering {
	t.Helper()
	evil := hostile()
	evil.Cell.Engine = attack + " **b** | [l](http://x.y)"
	run := comparetest.Run(t, "gated", comparetest.Native(8), evil)
	res := judged(t, `{"peak_pss_mb": {"max": 9, "engine": "llamacpp"}, "baseline_pss": {"max": 1, "engine": "llamacpp"},
		"ttft_ms": {"max": 1, "level": "warn"}, "latency": {"max": 1e9}, "failed": "off",
		"vs_baseline": {"decode_tps": "-5%"}}`, run, run)
	return rendering{res, []*record.Run{run}}
}

// later has launches that are each a little slower than the one before, which a trend is.
func later(t *testing.T) *record.Run {
	t.Helper()
	run := comparetest.Run(t, "x", comparetest.Native(8))
	for n, a := range run.Attempts {
		for _, q := range a.Requests {
			for i := range q.Tokens {
				q.Tokens[i].NS += int64(n) * 3e6
			}
		}
	}
	return run
}

// grouped are two runs of the same, the second of which is slower, with means by engine and prompt.
func grouped(t *testing.T) rendering {
	t.Helper()
	a, b, other := comparetest.Native(8), comparetest.Native(8), comparetest.Native(8)
	a.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 460, Shared: 3}}
	b.Processes = a.Processes
	b.TTFT += b.TTFT / 300
	b.Token *= 2
	other.Cell.ID, other.Cell.PromptID, other.Cell.Prompt = 7, 2, "There was"
	runs := []*record.Run{comparetest.Run(t, "before", a, other), comparetest.Run(t, "after", b, other)}
	o := compare.Defaults()
	o.By = []string{"engine", "input_len"}
	return rendering{compare.With(o, runs...), runs}
}

// parted is a run of two engines that part at the seventh token, in which the second one's text was forced on both.
func parted(t *testing.T) *record.Run {
	t.Helper()
	web, llama := comparetest.Browser(1), comparetest.Native(1)
	web.IDs[6] = 511
	scores := func(differs bool) (out []record.Score) {
		sure := -0.25
		if differs {
			sure = -0.28125
		}
		for i, id := range llama.IDs {
			s := record.Score{Position: i, Forced: id, LogProb: sure,
				Top: []record.Candidate{{ID: id, LogProb: sure}, {ID: 900, LogProb: -3}}}
			if i == 6 {
				s.Top = []record.Candidate{{ID: id, LogProb: -0.75}, {ID: 511, LogProb: -0.8125}}
				if differs {
					s.Top = []record.Candidate{{ID: 511, LogProb: -0.75}, {ID: id, LogProb: -0.78125}}
				}
				for _, c := range s.Top {
					if c.ID == id {
						s.LogProb = c.LogProb
					}
				}
			}
			out = append(out, s)
		}
		return out
	}
	text := record.Scoring{Reference: llama.Cell.ID, Attempt: 2, PromptIDs: llama.PromptIDs, Top: 2}
	web.Scored, llama.Scored, web.Scores, llama.Scores = text, text, scores(true), scores(false)
	run := comparetest.Run(t, "parted", web, llama)
	run.Pieces = map[int]string{511: " sky", 199: "\n</script><b>x", 3: "\u202eevil"}
	return run
}

// Outputs that part at a near tie pass, because rounding decides there. Outputs that part elsewhere fail.
func TestJUnitPassesNearTies(t *testing.T) {
	same, other := true, false
	for name, c := range map[string]struct {
		change func(*parity.Parity)
		passes bool
	}{
		"rounding is enough":      {func(p *parity.Parity) { p.SamePrompt = &same }, true},
		"rounding is not enough":  {func(p *parity.Parity) { p.First.Rounding = false }, false},
		"nobody asked":            {func(p *parity.Parity) { p.First = nil }, false},
		"the prompts differ, too": {func(p *parity.Parity) { p.SamePrompt = &other }, false},
	} {
		p := parity.Parity{Compared: true, Verdict: "they part at token 3",
			First: &parity.Divergence{Index: 2, Rounding: true}}
		c.change(&p)
		res := &compare.Result{Cells: []*compare.Cell{{Label: "left"}, {Label: "right"}}, Parity: []parity.Parity{p}}
		res.Parity[0].A, res.Parity[0].B = 0, 1
		text := rendered(t, func(w io.Writer) error { return reports.JUnit(w, res) })
		if failed := strings.Contains(text, `type="parity"`); failed == c.passes {
			t.Errorf("%s: failed is %v in\n%s", name, failed, text)
		}
		if c.passes && !strings.Contains(text, "passed, although the outputs differ: they part at token 3") {
			t.Errorf("%s: nothing is said of it in\n%s", name, text)
		}
	}
}
