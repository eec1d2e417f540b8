//go:build !race

package reports_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/recount"
	"llmparity/reports"
)

// gated is a run that is held against rules and, unless that is nil, a baseline.
type gated struct {
	run, base *record.Run
	rules     *plan.Gate
	again     *recount.Gated
}

func newGated(t *testing.T, rules string, now, base []comparetest.Engine) *gated {
	t.Helper()
	open := func(name string, engines []comparetest.Engine) (*record.Run, *recount.Work) {
		dir := comparetest.Write(t, t.TempDir(), name, engines...)
		run, err := record.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return run, recount.From(t, dir)
	}
	g := &gated{}
	var err error
	if g.rules, err = plan.ParseGate([]byte(rules), "gate.json"); err != nil {
		t.Fatal(err)
	}
	run, work := open("run", now)
	g.run = run
	var before *recount.Work
	if base != nil {
		g.base, before = open("baseline", base)
	}
	g.again = recount.NewGate(t, rules, work, before)
	return g
}

// judged is the run's result with its gate.
func (g *gated) judged() *compare.Result {
	res := compare.Runs(g.run)
	var base *compare.Result
	if g.base != nil {
		base = compare.Runs(g.base)
	}
	res.Gate = gate.Evaluate(g.rules, res, base)
	return res
}

func (g *gated) check(t *testing.T, tb testing.TB, res *compare.Result) {
	t.Helper()
	page, own, junit := g.renderings(t, res)
	g.again.Check(tb, []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, res) })), own, junit,
		string(page))
}

func (g *gated) renderings(t *testing.T, res *compare.Result) (page, own, junit []byte) {
	t.Helper()
	out := func(render func(io.Writer) error) []byte { return []byte(rendered(t, render)) }
	return out(func(w io.Writer) error { return reports.HTML(w, res, g.run) }),
		out(func(w io.Writer) error { return reports.GateJSON(w, res.Gate) }),
		out(func(w io.Writer) error { return reports.GateJUnit(w, res.Gate) })
}

// both are two engines on one device, the second so much slower and larger.
func both(launches int, vary, slower, larger float64) []comparetest.Engine {
	a, b := comparetest.Browser(launches), comparetest.Native(launches)
	a.Vary, b.Vary = vary, vary
	b.Token = time.Duration(float64(b.Token) * slower)
	b.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 46 * larger, Shared: 3}}
	return []comparetest.Engine{a, b}
}

const strict = `{"vs_baseline": {"decode_tps": "-5%", "peak_pss": "+3%", "ttft": {"change": "+10%", "level": "warn"}, "load_time": "0%"},
	"peak_pss": {"max": 900}, "decode_tps": [{"min": 20, "engine": "webllm"}, {"min": 500, "engine": "llamacpp", "level": "warn"}],
	"parity": {"min_agreement": "100%"}}`

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

// What a gate says is worked out again from the rules and both folders.
func TestAGateIsThatOfTheRecord(t *testing.T) {
	type engines = []comparetest.Engine
	native := func(launches int, change func(*comparetest.Engine)) comparetest.Engine {
		e := comparetest.Native(launches)
		change(&e)
		return e
	}
	same := func(*comparetest.Engine) {}
	for name, of := range map[string]struct {
		rules     string
		now, base engines
		status    compare.GateStatus
	}{
		"equal":                      {strict, both(8, 0.03, 1, 1), both(9, 0.03, 1, 1), compare.GatePassed},
		"much worse":                 {strict, both(8, 0.02, 1.3, 1.3), both(7, 0.02, 1, 1), compare.GateFailed},
		"worse by less than is sure": {strict, both(7, 0.02, 1.06, 1), both(8, 0.02, 1, 1), compare.GateWarned},
		"worse within what is let pass": {`{"vs_baseline": {"decode_tps": "-50%", "peak_pss": "+40%"}}`,
			both(8, 0.02, 1.3, 1.2), both(7, 0.02, 1, 1), compare.GatePassed},
		"better": {strict, both(8, 0.02, 0.7, 0.8), both(8, 0.03, 1, 1), compare.GatePassed},
		"too few": {strict, both(3, 0.02, 1.3, 1.3), both(8, 0.02, 1, 1),
			compare.GateInconclusive},
		"a few and many questions": {strict, both(6, 0.02, 1.3, 1.3), both(6, 0.02, 1, 1), compare.GateFailed},
		"limits": {`{"ttft": [{"max": 9}, {"max": 5}, {"max": 9.2, "level": "warn"}, {"min": 8, "max": 9.3}, {"min": 30}, {"max": 1, "engine": "none"}],
			"peak_pss": {"max": 1, "level": "off"}, "baseline_pss": {"max": 1}, "latency": {"max": 60}}`, engines{native(8, func(e *comparetest.Engine) { e.Vary = 0.1 })}, nil, compare.GateFailed},
		"limits of few launches": {`{"level": "warn", "ttft": [{"max": 9}, {"max": 5}, {"max": 9.2}, {"min": 8, "max": 9.3}, {"min": 30}]}`, both(4, 0.1, 1, 1), nil, compare.GateWarned},
		"one launch": {`{"ttft": {"max": 9, "level": "warn"}, "latency": {"min": 1}}`, both(1, 0.1, 1, 1),
			nil, compare.GateWarned},
		"no baseline run": {`{"vs_baseline": {"decode_tps": "-5%"}, "ttft": {"max": 1000}}`, both(8, 0.03, 1,
			1), nil, compare.GateInconclusive},
		"none, only warned of": {`{"inconclusive": "warn", "vs_baseline": {"decode_tps": "-5%"}, "ttft": {"max": 1000}}`, both(8, 0.03, 1, 1), nil, compare.GateWarned},
		"none, and off": {`{"inconclusive": "off", "vs_baseline": {"decode_tps": "-5%"}, "ttft": {"max": 1000}}`,
			both(8, 0.03, 1, 1), nil, compare.GatePassed},
		"none yet": {`{"no_baseline": "ok", "vs_baseline": {"decode_tps": "-5%"}, "parity": {"min_agreement": "100%", "with": "baseline"}}`, both(8, 0.03, 1, 1), nil, compare.GatePassed},
		"noise":    {`{"vs_baseline": {"decode_tps": "-5%", "peak_pss": "+3%", "ttft": {"change": "+10%", "detect": "40%"}}}`, both(10, 0.15, 1.1, 1), both(7, 0.15, 1, 1), compare.GateInconclusive},
		"noise, and a lax gate": {`{"detect": "60%", "vs_baseline": {"decode_tps": "-5%"}}`, both(10, 0.15, 1, 1),
			both(9, 0.15, 1, 1), compare.GatePassed},
		"another model": {`{"vs_baseline": {"decode_tps": "-5%"}}`, engines{native(8,
			func(e *comparetest.Engine) { e.Cell.Model.SHA256 = "ffff" })}, engines{native(8, same)},
			compare.GateInconclusive},
		"nothing can be judged": {`{"vs_baseline": {"decode_tps": "-5%"}}`, both(8, 0.03, 1, 1), nil,
			compare.GateInconclusive},
		"gone and new": {`{"gone": "warn", "vs_baseline": {"decode_tps": "-5%"}}`, engines{native(8,
			same)}, engines{comparetest.Browser(8)}, compare.GateInconclusive},
		"gone": {strict, both(8, 0.03, 1, 1)[1:], both(8, 0.03, 1, 1), compare.GateFailed},
		"new":  {strict, both(8, 0.03, 1, 1), both(8, 0.03, 1, 1)[1:], compare.GateInconclusive},
		"failed launches": {`{"vs_baseline": {"decode_tps": "-5%"}}`,
			engines{native(9, func(e *comparetest.Engine) {
				e.Failing, e.Cut,
					e.Warmup = map[int]record.Class{3: record.OOM}, 5, true
			})},
			engines{native(8, same)}, compare.GateFailed},
		"one failed launch": {`{"latency": {"max": 1000}}`,
			engines{native(7, func(e *comparetest.Engine) { e.Failing = map[int]record.Class{3: record.OOM} })}, nil,
			compare.GateFailed},
		"words of one engine": {`{"parity": {"min_agreement": "100%", "engine": "webllm"}}`,
			engines{differing(comparetest.Browser(6)), native(6, same)}, nil, compare.GateFailed},
		"worse by the test alone": {`{"vs_baseline": {"decode_tps": "-5%"}}`, engines{slow(6, 1.09)},
			engines{slow(8, 1)}, compare.GateWarned},
		"worse by the interval alone": {`{"vs_baseline": {"decode_tps": "-5%"}}`, engines{slow(7, 1.09)},
			engines{slow(6, 1)}, compare.GateWarned},
		"another device": {`{"vs_baseline": {"decode_tps": "-5%"}, "latency": {"max": 1000}}`,
			engines{native(8, func(e *comparetest.Engine) { e.Device.Name = "another" })}, engines{native(8,
				same)}, compare.GateInconclusive},
		"another type": {`{"vs_baseline": {"decode_tps": "-5%"}, "latency": {"max": 1000}}`,
			engines{native(8,
				func(e *comparetest.Engine) { e.Info.Policy = map[string]string{"kv_dtype": "f16"} })},
			engines{native(8, same)}, compare.GatePassed},
		"another cache": {`{"vs_baseline": {"decode_tps": "-5%"}, "latency": {"max": 1000}}`,
			engines{native(8, func(e *comparetest.Engine) { e.Cell.KVDType = "q8_0" })}, engines{native(8,
				same)}, compare.GatePassed},
		"versions": {strict, versions(8, 1, 1.5), versions(9, 1.5, 1), compare.GateFailed},
		"repetitions that share a launch": {`{"vs_baseline": {"decode_tps": "-5%"}, "ttft": {"max": 5}}`,
			engines{native(8, func(e *comparetest.Engine) { e.Reused, e.Cell.Reused = true, true })},
			engines{native(8, func(e *comparetest.Engine) { e.Reused, e.Cell.Reused = true, true })},
			compare.GateFailed},
		"programs outside": {`{"vs_baseline": {"peak_pss": "+3%", "decode_tps": "-5%"}}`, engines{native(8, same)},
			engines{native(8, func(e *comparetest.Engine) {
				e.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 46, Shared: 7}}
			})}, compare.GateInconclusive},
		"other words": {`{"parity": {"min_agreement": "51%"}, "gone": "off"}`,
			engines{differing(comparetest.Browser(6)), native(6, same)}, nil, compare.GateFailed},
		"other words after enough": {`{"parity": {"min_agreement": "50%", "first_divergence": 33}}`,
			engines{differing(comparetest.Browser(6)), native(6, same)}, nil, compare.GatePassed},
		"other words too soon": {`{"parity": {"first_divergence": 34, "level": "warn"}}`,
			engines{differing(comparetest.Browser(6)), native(6, same)}, nil, compare.GateWarned},
		"other words than the baseline's": {`{"parity": {"min_agreement": "100%", "with": "baseline"}}`,
			engines{differing(comparetest.Browser(6)), native(6, same)}, both(6, 0.03, 1, 1), compare.GateFailed},
		"words of pieces": {`{"parity": {"min_agreement": "20%", "first_divergence": 3}}`,
			engines{native(6, same), comparetest.Served(6)}, nil, compare.GateInconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t, of.rules, of.now, of.base)
			res := g.judged()
			if res.Gate.Status != of.status {
				t.Errorf("%s: %s", res.Gate.Status, res.Gate.Verdict)
			}
			g.check(t, t, res)
		})
	}
}

// A gate that says something else than the folders is found out.
func TestWrongGatesAreFound(t *testing.T) {
	worse := newGated(t, strict, both(8, 0.02, 1.3, 1.3), both(7, 0.02, 1, 1))
	few := newGated(t, `{"ttft": [{"max": 9.1}, {"max": 900}], "vs_baseline": {"decode_tps": "-5%"}, "peak_pss": {"max": 10, "level": "warn"}}`, both(4, 0.02, 1, 1), nil)
	find := func(r *compare.Result, kind compare.GateKind, cell, figure string) *compare.GateCheck {
		return &r.Gate.Checks[slices.IndexFunc(r.Gate.Checks, func(c compare.GateCheck) bool {
			return c.Kind == kind && c.Cell == cell && c.Figure == figure
		})]
	}
	decode := func(r *compare.Result) *compare.GateCheck {
		return find(r, compare.GateChange, "llamacpp", figure.DecodeTPS)
	}
	peak := func(r *compare.Result) *compare.GateCheck {
		return find(r, compare.GateLimit, "webllm", figure.PeakPSS)
	}
	pages := map[*gated]string{} // as they are: to make them takes long
	for _, g := range []*gated{worse, few} {
		page, _, _ := g.renderings(t, g.judged())
		pages[g] = string(page)
	}
	for _, c := range []struct {
		in     *gated
		says   string
		change func(*compare.Result)
	}{
		{worse, ", measured is", func(r *compare.Result) { *decode(r).Measured *= 1.00001 }},
		{worse, ", baseline is", func(r *compare.Result) { *decode(r).Baseline *= 1.00001 }},
		{worse, ", change is", func(r *compare.Result) { *decode(r).Percent += 0.0001 }},
		{worse, ", p is", func(r *compare.Result) { *decode(r).P /= 2 }},
		{worse, ", p corrected is", func(r *compare.Result) { *decode(r).PHolm *= 1.01 }},
		{worse, ", p corrected: it is in the report: false", func(r *compare.Result) { decode(r).PHolm = nil }},
		{worse, ", lower end is", func(r *compare.Result) { decode(r).Interval.Lo *= 0.999 }},
		{worse, ", upper end is", func(r *compare.Result) { peak(r).Interval.Hi *= 1.001 }},
		{worse, ", chance of the interval is", func(r *compare.Result) { peak(r).Interval.Confidence = 0.95 }},
		{worse, ", interval: it is in the report: false", func(r *compare.Result) { peak(r).Interval = nil }},
		{worse, "interval of the percentage, upper end is",
			func(r *compare.Result) { decode(r).PercentInterval.Hi += 0.01 }},
		{worse, "interval of the percentage, lower end is",
			func(r *compare.Result) { decode(r).PercentInterval.Lo -= 0.01 }},
		{worse, "what is detected, lower end is", func(r *compare.Result) { decode(r).DetectInterval.Lo -= 0.01 }},
		{worse, "what must be detected is", func(r *compare.Result) { *decode(r).Detect += 1 }},
		{worse, "what would have been found is", func(r *compare.Result) { *decode(r).Found *= 1.01 }},
		{worse, "launches that would settle it is", func(r *compare.Result) { decode(r).Needed++ }},
		{few, "its advice is", func(r *compare.Result) { r.Gate.Advice = "" }},
		{worse, ", launches is", func(r *compare.Result) { decode(r).Launches++ }},
		{worse, ", launches of the baseline is", func(r *compare.Result) { decode(r).BaseLaunches++ }},
		{worse, "its status is warn", func(r *compare.Result) { decode(r).Status = compare.GateWarned }},
		{worse, "its status is fail", func(r *compare.Result) { peak(r).Status = compare.GateFailed }},
		{worse, "is not among those", func(r *compare.Result) { *decode(r).Allowed = -6 }},
		{worse, "is not among those", func(r *compare.Result) { decode(r).Level = "warn" }},
		{worse, "is missing", func(r *compare.Result) { peak(r).Max = new(901.0) }},
		{worse, "is missing", func(r *compare.Result) { r.Gate.Checks = r.Gate.Checks[1:] }},
		{worse, "it is called latency_ms", func(r *compare.Result) { decode(r).Column = "latency_ms" }},
		{worse, "in s", func(r *compare.Result) { decode(r).Unit = "s" }},
		{worse, "its reason is", func(r *compare.Result) {
			decode(r).Why = strings.Replace(decode(r).Why, "p = 0",
				"p = 1", 1)
		}},
		{worse, "its reason is", func(r *compare.Result) { peak(r).Why = "median small" }},
		{worse, "no reason", func(r *compare.Result) {
			find(r, compare.GateParity, "webllm and llamacpp",
				"").Why = ""
		}},
		{worse, `it is called "decode_tokens_per_s at most 6% lower`,
			func(r *compare.Result) { decode(r).Name = strings.Replace(decode(r).Name, "5%", "6%", 1) }},
		{worse, "questions is", func(r *compare.Result) { r.Gate.Tests-- }},
		{worse, "alpha is", func(r *compare.Result) { r.Gate.Alpha = 0.1 }},
		{worse, "the counts are", func(r *compare.Result) { r.Gate.Counts[0].Checks-- }},
		{worse, "it is called warn", func(r *compare.Result) { r.Gate.Status = compare.GateWarned }},
		{worse, "its verdict is", func(r *compare.Result) {
			r.Gate.Verdict = strings.Replace(r.Gate.Verdict, "fails: ", "fails: 1", 1)
		}},
		{worse, "comes after one of", func(r *compare.Result) { slices.Reverse(r.Gate.Checks) }},
		{few, ", p: it is in the report: true",
			func(r *compare.Result) { find(r, compare.GateChange, "all", figure.DecodeTPS).P = new(0.5) }},
		{few, "its status is fail", func(r *compare.Result) {
			find(r, compare.GateChange, "all", figure.DecodeTPS).Status = compare.GateFailed
		}},
		{few, ", interval: it is in the report: true",
			func(r *compare.Result) { peak(r).Interval = &stats.Interval{Lo: 1, Hi: 2, Confidence: 0.95} }},
	} {
		res := c.in.judged()
		c.change(res)
		found := &deaf{TB: t}
		out := func(render func(io.Writer) error) []byte { return []byte(rendered(t, render)) }
		c.in.again.Check(found, out(func(w io.Writer) error { return reports.JSON(w, res) }),
			out(func(w io.Writer) error { return reports.GateJSON(w, res.Gate) }),
			out(func(w io.Writer) error { return reports.GateJUnit(w, res.Gate) }), pages[c.in])
		found.hears(t, c.says)
	}
	// Each rendering is held too.
	res := worse.judged()
	page, own, junit := worse.renderings(t, res)
	text := []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, res) }))
	for _, c := range []struct {
		says             string
		page, own, junit []byte
	}{
		{"the page says", bytes.Replace(page, []byte(" tokens/s</td>"), []byte("1 tokens/s</td>"), 1), own, junit},
		{"the gate's own JSON", page, bytes.Replace(own, []byte(`"tests": `), []byte(`"tests": 1`), 1), junit},
		{"JUnit's case", page, own, bytes.ReplaceAll(bytes.ReplaceAll(junit, []byte("<failure "), []byte("<error ")),
			[]byte("</failure>"), []byte("</error>"))},
		{"failures", page, own, bytes.Replace(junit, []byte(`failures="`), []byte(`failures="1`), -1)},
	} {
		found := &deaf{TB: t}
		worse.again.Check(found, text, c.own, c.junit, string(c.page))
		found.hears(t, c.says)
	}
}
