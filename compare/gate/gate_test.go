package gate_test

import (
	"fmt"
	"math"
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
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func parse(t *testing.T, text string) *gates.Gate {
	t.Helper()
	g, err := plan.ParseGate([]byte(text), "gate.yaml")
	check.Err(t, err)
	return g
}

func result(t *testing.T, engines ...comparetest.Engine) *compare.Result {
	t.Helper()
	return compare.Runs(comparetest.Run(t, "run", engines...))
}

// one is the only check whose name, cell or reason has these words.
func one(t *testing.T, g *gates.Outcome, words ...string) gates.Check {
	t.Helper()
	var found []gates.Check
	for _, c := range g.Checks {
		all := true
		for _, w := range words {
			all = all && strings.Contains(c.Cell+" "+c.Name, w)
		}
		if all {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d checks of %q: %+v", len(found), words, g.Checks)
	}
	return found[0]
}

func expect(t *testing.T, c gates.Check, status gates.Status, why string) {
	t.Helper()
	if c.Status != status || !strings.Contains(c.Why, why) {
		t.Errorf("%s: %s: %s: %q, want %s: %q", c.Cell, c.Name, c.Status, c.Why, status, why)
	}
}

// A refused cell is no failed launch: the gate can't be decided, and says why.
func TestGateReportsRefusedCells(t *testing.T) {
	refused := comparetest.Browser(2)
	refused.Refused = fault.New(fault.NoChrome, "", "there is no browser")
	g := gate.Evaluate(parse(t, "peak_pss_mb: {max: 900}"), result(t, refused, comparetest.Native(8)), nil)
	expect(t, one(t, g, "webllm", "all launches"), gates.Inconclusive, "refused: there is no browser")
	expect(t, one(t, g, "webllm", "peak_pss_mb"), gates.Inconclusive, "not measured: refused")
	expect(t, one(t, g, "llamacpp", "all launches"), gates.Passed, "8 launches counted")
	if got := fault.Of(gate.Fault(g, false)); got != fault.Inconclusive {
		t.Errorf("class %s", got)
	}
}

// Peak memory of Native is 48 MiB and a little more, its time to the first token some 9 ms.
func TestLimitFailsByTheIntervalAlone(t *testing.T) {
	e := comparetest.Native(8)
	e.Vary = 0.1
	now := result(t, e)
	f := now.Cells[0].Figure(figure.TTFT)
	if f.Interval == nil || !(f.Interval.Lo < f.Center() && f.Center() < f.Interval.Hi) {
		t.Fatalf("%+v", f)
	}
	for _, c := range []struct {
		limit  gates.Limit
		status gates.Status
		why    string
	}{
		{gates.Limit{Max: new(f.Interval.Lo * 0.99)}, gates.Failed, "limit at most"},
		{gates.Limit{Max: new(f.Interval.Lo)}, gates.Inconclusive, "beyond it, but not significantly"},
		{gates.Limit{Max: new((f.Interval.Lo + f.Center()) / 2)}, gates.Inconclusive,
			"beyond it, but not significantly"},
		{gates.Limit{Max: new(f.Center())}, gates.Passed, "% CI "},
		{gates.Limit{Max: new(f.Interval.Hi)}, gates.Passed, "median "},
		{gates.Limit{Min: new(f.Interval.Hi * 1.01)}, gates.Failed, "limit at least"},
		{gates.Limit{Min: new((f.Interval.Hi + f.Center()) / 2)}, gates.Inconclusive, "limit at least"},
		{gates.Limit{Min: new(f.Interval.Lo), Max: new(f.Interval.Hi)}, gates.Passed, "limit at least"},
		{gates.Limit{Min: new(0.0), Max: new(f.Interval.Lo * 0.99)}, gates.Failed, "and at most"},
		{gates.Limit{Max: new(f.Interval.Lo * 0.99), Level: gates.Warn}, gates.Warned, "limit at most"},
		{gates.Limit{Max: new(1e9), Scope: gates.Scope{"engine": {"webllm"}}}, gates.Inconclusive,
			`the run has no cell of engine "webllm"; its engines are llamacpp`},
		{gates.Limit{Max: new(1e9), Scope: gates.Scope{"temperature": {"0.7", "1"}}}, gates.Inconclusive,
			`the run has no cell of temperature "0.7" or "1"; its temperatures are 0`},
		{gates.Limit{Max: new(1e9), Scope: gates.Scope{"llamacpp.ubatch": {"64"}}}, gates.Inconclusive,
			`the run has no cell of llamacpp.ubatch "64"; its values of ubatch are not set`},
		{gates.Limit{Max: new(1e9), Scope: gates.Scope{"temperature": {"0.0"}, "threads": {"default"}}},
			gates.Passed, ""},
		{gates.Limit{Max: new(1e9), Scope: gates.Scope{"engine": {"llamacpp"}, "model": {"tiny"}, "prompt": {"1"}}},
			gates.Passed, ""},
		{gates.Limit{Max: new(1e9), Scope: gates.Scope{"prompt": {"Once upon a time"}}}, gates.Passed, ""},
	} {
		var err error
		if c.limit.Figure, err = figure.Find("ttft_ms"); err != nil {
			t.Fatal(err)
		}
		got := gate.Evaluate(&gates.Gate{Limits: []gates.Limit{c.limit}}, now, nil)
		expect(t, one(t, got, "ttft_ms"), c.status, c.why)
	}
	expect(t, one(t, gate.Evaluate(parse(t, "ttft: {max: 100}"), now, nil), "all launches"), gates.Passed,
		"8 launches counted")
	off := gate.Evaluate(parse(t, "peak_pss: {max: 1, level: off}\nttft: {max: 100}"), now, nil)
	if len(off.Checks) != 2 || off.Status != gates.Passed {
		t.Errorf("what is off is looked at: %+v", off.Checks)
	}
	absent := gate.Evaluate(parse(t, "baseline_pss: {max: 1}\nttft: {max: 100}"), now, nil)
	expect(t, one(t, absent, "baseline_pss"), gates.Inconclusive, "not measured")
	if absent.Status != gates.Inconclusive {
		t.Errorf("%s: %s", absent.Status, absent.Verdict)
	}
}

func TestLimitOfFewLaunchesFailsByAllOfThem(t *testing.T) {
	e := comparetest.Native(3)
	e.Vary = 0.1
	now := result(t, e)
	f := now.Cells[0].Figure(figure.TTFT)
	least, most := f.Values[0].Value, f.Values[0].Value
	for _, v := range f.Values {
		least, most = min(least, v.Value), max(most, v.Value)
	}
	row, _ := figure.Find("ttft")
	for _, c := range []struct {
		limit  float64
		status gates.Status
		why    string
	}{{least * 0.99, gates.Failed, ": every launch is beyond it"},
		{(least + f.Center()) / 2, gates.Inconclusive, "but not every launch"}, {f.Center(), gates.Passed,
			"too few for an interval"},
		{most, gates.Passed, ": the median is within it"}} {
		got := gate.Evaluate(&gates.Gate{Limits: []gates.Limit{{Figure: row, Max: &c.limit}}}, now, nil)
		expect(t, one(t, got, "ttft_ms"), c.status, c.why)
	}
}

const usual = "vs_baseline: {decode_tps: -5%, peak_pss_mb: +3%, ttft_ms: {change: +10%, level: warn}}"

func TestAgainstABaselineRun(t *testing.T) {
	base := result(t, comparetest.Native(8), comparetest.Browser(8))
	same := gate.Evaluate(parse(t, usual), base, base)
	if same.Status != gates.Passed || same.Tests != 6 || len(same.Checks) != 8 || same.Advice != "" {
		t.Errorf("with itself: %s, %d tests, %d checks: %s", same.Status, same.Tests, len(same.Checks), same.Verdict)
	}
	slower := comparetest.Native(8)
	slower.Token, slower.TTFT = slower.Token*5/4, slower.TTFT*3/2
	got := gate.Evaluate(parse(t, usual), result(t, slower, comparetest.Browser(8)), base)
	decode := one(t, got, "llamacpp", "decode")
	expect(t, decode, gates.Failed, "%, 99% CI -")
	if !strings.HasSuffix(decode.Why, "; tolerance -5%") {
		t.Error(decode.Why)
	}
	if decode.Name != "decode_tps at most 5% lower than the baseline run" || *decode.Allowed != -5 ||
		*decode.Detect != -15 || *decode.Percent > -15 ||
		decode.PercentInterval.Hi > -5 || *decode.PCorrected > 0.05 || *decode.P > *decode.PCorrected ||
		*decode.Baseline <= *decode.Measured || decode.Launches != 8 ||
		*decode.Found > -5 || *decode.Found < -25 || decode.Needed != 0 {
		t.Errorf("%+v", decode)
	}
	expect(t, one(t, got, "llamacpp", "ttft_ms"), gates.Warned, "; tolerance +10%")
	expect(t, one(t, got, "webllm", "decode"), gates.Passed, ", 90% CI ")
	if got.Status != gates.Failed || !strings.HasPrefix(got.Verdict,
		"The gate fails: 1 of 6 checks: llamacpp: decode_tps") ||
		!strings.HasSuffix(got.Verdict, ". 2 more checks can only warn.") ||
		got.Checks[0].Name != decode.Name {
		t.Errorf("%s: %s", got.Status, got.Verdict)
	}
	better := gate.Evaluate(parse(t, usual), base, result(t, slower, comparetest.Browser(8)))
	expect(t, one(t, better, "llamacpp", "decode"), gates.Passed, "; better")
	little := comparetest.Native(8)
	little.Vary = 0
	was := result(t, little)
	little.Token = little.Token * 103 / 100
	expect(t, one(t, gate.Evaluate(parse(t, usual), result(t, little), was), "decode"), gates.Passed,
		"; worse, within the tolerance")
	onlyOne := gate.Evaluate(parse(t, "vs_baseline: {decode_tps: {change: -5%, engine: llamacpp}}"), base, base)
	if onlyOne.Tests != 1 {
		t.Errorf("a gate over one engine asks %d questions", onlyOne.Tests)
	}
}

// A check that is neither worse than its tolerance nor shown to be no worse than what must be detected is
// inconclusive: it says how many launches would settle it, and the gate what to do first.
func TestGateIsInconclusiveWhereLaunchesVary(t *testing.T) {
	noisy := comparetest.Native(10)
	noisy.Vary = 0.2
	worse := noisy
	worse.Token = worse.Token * 11 / 10
	g := parse(t, "vs_baseline: {decode_tps: -5%}")
	got := gate.Evaluate(g, result(t, worse), result(t, noisy))
	check := one(t, got, "decode")
	expect(t, check, gates.Inconclusive, "launches a side would settle it")
	if check.Needed <= 10 || got.Status != gates.Inconclusive ||
		!strings.Contains(got.Verdict, " To settle it, measure both sides here: "+
			"llmparity run results/run/plan.yaml --against results/run --repetitions ") {
		t.Errorf("%d: %s", check.Needed, got.Verdict)
	}
	slow := worse
	slow.TTFT = slow.TTFT * 21 / 20
	both := gate.Evaluate(parse(t, "vs_baseline: {decode_tps: -5%, ttft_ms: +8%}"), result(t, slow), result(t, noisy))
	decode, ttft := one(t, both, "decode"), one(t, both, "ttft")
	for _, c := range []gates.Check{decode, ttft} { // one number for all, though each needs another
		most := fmt.Sprint(max(decode.Needed, ttft.Needed))
		expect(t, c, gates.Inconclusive, "; "+most+" launches a side would settle it")
		if decode.Needed == ttft.Needed || !strings.HasSuffix(both.Verdict, " --repetitions "+most+".") {
			t.Errorf("%d and %d: %s", decode.Needed, ttft.Needed, both.Verdict)
		}
	}
	g.Inconclusive = gates.Warn
	if got := gate.Evaluate(g, result(t, worse), result(t, noisy)); got.Status != gates.Warned ||
		got.Verdict != "The gate passes with warnings: 1 of 2 checks pass, 1 is inconclusive." {
		t.Errorf("%s: %s", got.Status, got.Verdict)
	}
	g.Inconclusive, g.Changes[0].Level = "", gates.Warn // a check that could not fail the gate does not hold it up
	if got := gate.Evaluate(g, result(t, worse), result(t, noisy)); got.Status != gates.Warned {
		t.Errorf("%s: %s", got.Status, got.Verdict)
	}
	much := noisy
	much.Vary = 0.5
	expect(t, one(t, gate.Evaluate(g, result(t, much), result(t, noisy)), "decode"), gates.Inconclusive,
		"more launches would not settle it in practice")
	g.Changes[0].Level, g.Detect = "", 0.6
	expect(t, one(t, gate.Evaluate(g, result(t, worse), result(t, noisy)), "decode"), gates.Passed,
		"detect -60%")
	run := comparetest.Run(t, "run", worse)
	run.Meta.Against = "base"
	got = gate.Evaluate(parse(t, "vs_baseline: {decode_tps: -5%}"), compare.Runs(run),
		compare.Runs(comparetest.Run(t, "base", noisy)))
	if !got.Interleaved || !strings.Contains(got.Verdict,
		" To settle it, measure both sides again with --repetitions ") {
		t.Errorf("%v: %s", got.Interleaved, got.Verdict)
	}
}

func TestGateIsInconclusiveWithoutData(t *testing.T) {
	native := comparetest.Native
	few := gate.Evaluate(parse(t, "vs_baseline: {decode_tps: -5%}"), result(t, native(3)), result(t, native(3)))
	expect(t, one(t, few, "decode"), gates.Inconclusive, "3 and 3 launches are too few; 6 launches a side would settle it")
	reused := native(8)
	reused.Reused, reused.Cell.Reused = true, true
	shared := gate.Evaluate(parse(t, "vs_baseline: {decode_tps: -5%}"), result(t, reused), result(t, reused))
	expect(t, one(t, shared, "decode"), gates.Inconclusive, "repetitions in one launch count once")
	at := comparetest.Run(t, "run", native(6))
	at.Attempts[2].Measured()[0].Spans = nil // neither prefill nor decode was reported
	lost := gate.Evaluate(parse(t, "vs_baseline: {decode_tps: -5%}"), compare.Runs(at), result(t, native(6)))
	expect(t, one(t, lost, "decode"), gates.Inconclusive, "6 and 5 launches are too few; it is not known in "+
		"1 of 6 launches: the times of the 64 tokens are not known: the engine held them back, or reports no decode; "+
		"7 launches a side would settle it")
	for text, want := range map[string]gates.Status{"": gates.Inconclusive,
		"inconclusive: warn\n": gates.Warned,
		"inconclusive: off\n":  gates.Passed, "no_baseline: ok\n": gates.Passed} {
		g := parse(t, text+"vs_baseline: {decode_tps: -5%}\npeak_pss: {max: 900}")
		without := gate.Evaluate(g, result(t, native(8)), nil)
		verdict := map[string]string{"": ". First save a baseline run: llmparity baseline save NAME DIR.",
			"inconclusive: off\n": ": 2 of 3 checks pass, 1 inconclusive and ignored."}[text]
		if without.Status != want || !strings.Contains(without.Verdict, verdict) {
			t.Errorf("%q: %s: %s", text, without.Status, without.Verdict)
		}
	}
	for text, want := range map[string]gates.Status{"": gates.Inconclusive,
		"no_baseline: ok\n": gates.Passed} {
		got, err := gate.Judge(comparetest.Run(t, "run", native(8)),
			parse(t, text+"peak_pss: {max: 900}").Against(), gate.Against{Name: "main", Store: t.TempDir()},
			compare.Defaults())
		if check.Err(t, err); got.Status != want {
			t.Errorf("%q: %s: %s", text, got.Status, got.Verdict)
		}
	}
}

// Sides of an interleaved run are called by their names in every check, as in the title.
func TestGateNamesItsSides(t *testing.T) {
	dir := comparetest.Write(t, t.TempDir(), "main", comparetest.Native(8))
	run := comparetest.Run(t, "pr", comparetest.Native(8))
	run.Meta.Against = filepath.Base(dir)
	got, err := gate.Judge(run, parse(t, "vs_baseline: {decode_tps: -5%}\nparity: {with: baseline, min_agreement: 100%}"),
		gate.Against{Name: dir, Sides: []string{"main.js", "pr.js"}}, compare.Defaults())
	check.Err(t, err)
	text := fmt.Sprint(got.Verdict, got.Checks, got.Notes)
	if got.Run.Name != "pr.js" || got.Baseline.Name != "main.js" || strings.Contains(text, "baseline run") {
		t.Errorf("%s against %s: %s", got.Run.Name, got.Baseline.Name, text)
	}
	check.Has(t, text, "than main.js", ", main.js 9", "same output as main.js")
}

// What is under test may differ from the baseline run, and is noted; what is not makes the check inconclusive, by its
// name.
func TestGateReportsChangesNotUnderTest(t *testing.T) {
	info := func(change func(*record.EngineInfo)) func(*comparetest.Engine, *record.Run) {
		return func(e *comparetest.Engine, _ *record.Run) {
			if e.Info.Library != nil { // of a run alone there is no engine
				change(&e.Info)
			}
		}
	}
	base := result(t, comparetest.Browser(6))
	for what, c := range map[string]struct {
		change func(e *comparetest.Engine, r *record.Run)
		says   string
		tests  []string // what must be under test; nil: nothing helps
	}{
		"machine": {func(_ *comparetest.Engine, r *record.Run) { r.Environment.CPU = "Other" },
			"CPU model Other, baseline run Example CPU 3.0 GHz", nil},
		"cores": {func(_ *comparetest.Engine, r *record.Run) { r.Environment.Cores = 2 },
			"cores 2, baseline run 8", nil},
		"memory": {func(_ *comparetest.Engine, r *record.Run) { r.Environment.MemoryB = 8 << 30 },
			"memory 8.0 GiB, baseline run 24.0 GiB", nil},
		"governor": {func(_ *comparetest.Engine, r *record.Run) { r.Environment.Governor = "powersave" },
			"governor powersave, baseline run performance", nil},
		"class": {func(e *comparetest.Engine, _ *record.Run) { e.Device.Class = record.GPU },
			"device class gpu, baseline run software-adapter", nil},
		"device": {func(e *comparetest.Engine, _ *record.Run) { e.Device.Name = "Other" },
			"device Other, baseline run SwiftShader", nil},
		"temperature": {func(e *comparetest.Engine, _ *record.Run) { e.Cell.Temperature = 0.5 },
			"temperature 0.5, baseline run 0", nil},
		"OS kernel": {func(_ *comparetest.Engine, r *record.Run) { r.Environment.Kernel = "7.0" },
			"OS kernel 7.0, baseline run 6.12.0", []string{"", "all"}},
		"OS": {func(_ *comparetest.Engine, r *record.Run) { r.Environment.OS = "other" },
			"OS other, baseline run linux", []string{"", "all"}},
		"llmparity": {func(_ *comparetest.Engine, r *record.Run) { r.Meta.Tool.Version = "9" },
			"llmparity 9, baseline run 0.1.0", []string{"", "all"}},
		"engine": {func(e *comparetest.Engine, _ *record.Run) { e.Info.Version = "0.3" },
			"webllm 0.3, baseline run 0.2.86", []string{"", "all", "engine"}},
		"browser": {info(func(e *record.EngineInfo) { e.Parts["browser"] = "Chromium 157.0" }),
			"webllm's browser: Chromium 157.0, baseline run Chromium 156.0", []string{"", "all", "browser",
				"engine,browser"}},
		"origin": {info(func(e *record.EngineInfo) { e.Origin = "file slow.js" }),
			"webllm's origin: file slow.js, baseline run built in", []string{"", "all", "engine", "engine,browser"}},
		"library": {info(func(e *record.EngineInfo) { e.Library.SHA256 = "ffff" }),
			"webllm's model library sha256: ffff, baseline run 77aa01", []string{"", "all", "library"}},
		"kernels": {info(func(e *record.EngineInfo) { e.Library.Variant = "gpu kernels" }),
			"webllm's model library: llmparity's (gpu kernels), baseline run llmparity's (software", []string{"", "all", "library",
				"kernels"}},
		"policy": {func(e *comparetest.Engine, _ *record.Run) {
			e.Info.Policy = map[string]string{"kv_dtype": "f16", "weights_dtype": "f32"}
		}, "webllm kv dtype f16, baseline run f32", []string{"", "all", "settings"}},
		"context": {func(e *comparetest.Engine, _ *record.Run) { e.Cell.Model.Context = 512 },
			"context window 512, baseline run 256", []string{"", "all", "settings"}},
		"model": {func(e *comparetest.Engine, _ *record.Run) { e.Cell.Model.SHA256 = "ffff" },
			"model file ffff, baseline run 9a0c3b5d7e", []string{"model", "all,model"}},
		"name": {func(e *comparetest.Engine, _ *record.Run) { e.Cell.Model.Name = "other" },
			"model other, baseline run tiny", []string{"model", "all,model"}},
	} {
		e := comparetest.Browser(6)
		c.change(&e, &record.Run{})
		run := comparetest.Run(t, "run", e)
		c.change(&comparetest.Engine{}, run)
		now := compare.Runs(run)
		for _, tested := range []string{"", "all", "engine", "library", "kernels", "browser", "model", "settings",
			"all,model", "engine,browser"} {
			g := parse(t, "vs_baseline: {decode_tps: -10%}")
			if tested != "" {
				g.UnderTest = strings.Split(tested, ",")
			}
			got := gate.Evaluate(g, now, base)
			said, check := one(t, got, "decode").Why, one(t, got, "decode")
			may := slices.ContainsFunc(c.tests, func(helps string) bool {
				return helps == tested || helps != "" &&
					strings.HasPrefix(tested, helps+",")
			})
			if may {
				said = strings.Join(got.Notes, " ")
			}
			if may != (check.Status == gates.Passed) || !may && check.Status != gates.Inconclusive ||
				!strings.Contains(said, c.says) ||
				may == strings.Contains(said, "not under test") {
				t.Errorf("%s, under test %q: %s: %s; notes %q", what, tested, check.Status, check.Why, got.Notes)
			}
			if !may && got.Tests != 0 {
				t.Errorf("%s: %d questions", what, got.Tests)
			}
		}
	}
}

// A limit that fails on a busy machine is inconclusive. TestFrozenGatesOfBusyMachines has checks against a baseline
// run.
func TestGateOnBusyMachines(t *testing.T) {
	slower := comparetest.Native(8)
	slower.Token *= 2
	run := comparetest.Run(t, "busy", slower)
	run.Environment.Background = &record.Background{Seconds: 1, Cores: 6}
	g, base := parse(t, "vs_baseline: {decode_tps: -5%}\ndecode_tps: {min: 700}"), result(t, comparetest.Native(8))
	run.Meta.Against = "run" // the baseline run's folder
	got := gate.Evaluate(g, compare.Runs(run), base)
	expect(t, one(t, got, "decode", "at least"), gates.Inconclusive, "the machine was busy: ")
	expect(t, one(t, got, "decode", "baseline"), gates.Failed, "")
}

func TestMissingNewAndFailedCells(t *testing.T) {
	g := parse(t, usual)
	both, alone := result(t, comparetest.Native(8), comparetest.Browser(8)), result(t, comparetest.Native(8))
	gone := gate.Evaluate(g, alone, both)
	expect(t, one(t, gone, "webllm", "cell of the baseline run"), gates.Failed, "missing: ")
	g.Gone = gates.Off
	if got := gate.Evaluate(g, alone, both); got.Status != gates.Passed {
		t.Errorf("%s", got.Verdict)
	}
	fresh := gate.Evaluate(g, both, alone)
	expect(t, one(t, fresh, "webllm", "decode"), gates.Inconclusive, "new: the baseline run has no such cell")
	if fresh.Status != gates.Inconclusive || fresh.Tests != 3 {
		t.Errorf("%s, %d", fresh.Verdict, fresh.Tests)
	}
	g.NoBaseline = gates.BaselineOptional
	if fresh = gate.Evaluate(g, both, alone); fresh.Status != gates.Passed || len(fresh.Notes) != 1 ||
		!strings.Contains(fresh.Notes[0], "webllm is new") {
		t.Errorf("%s, %q", fresh.Verdict, fresh.Notes)
	}
	g.Gone = gates.Warn
	if none := gate.Evaluate(g, result(t, comparetest.Browser(8)), alone); none.Status != gates.Inconclusive {
		t.Errorf("no cell in common: %s", none.Verdict)
	}
	failing := comparetest.Native(8)
	failing.Failing = map[int]record.Class{3: "device-lost"}
	got := gate.Evaluate(parse(t, "peak_pss: {max: 900}"), result(t, failing), nil)
	expect(t, one(t, got, "all launches"), gates.Failed, "1 of 8 launches failed, the first: device-lost")
	if got := gate.Evaluate(parse(t, "failed: warn\npeak_pss: {max: 900}"), result(t, failing),
		nil); got.Status != gates.Warned {
		t.Errorf("%s", got.Verdict)
	}
	newer := comparetest.Native(8)
	newer.Info.Version = "b12000"
	if got := gate.Evaluate(g, result(t, newer), alone); got.Status != gates.Passed || len(got.Notes) != 1 ||
		got.Notes[0] != "under test: llamacpp b12000, baseline run b11434" {
		t.Errorf("%s %q", got.Verdict, got.Notes)
	}
}

// Cells of two versions of an engine have the same request: each is compared with its own version.
func TestVersionsOfAnEngineAreMatched(t *testing.T) {
	older, newer := comparetest.Native(8), comparetest.Native(8)
	newer.Cell.ID, newer.Info.Version, newer.Token = 3, "b12000", 2*newer.Token
	g := parse(t, "vs_baseline: {decode_tps: -5%}")
	if got := gate.Evaluate(g, result(t, newer, older), result(t, older, newer)); got.Status != gates.Passed ||
		len(got.Checks) != 4 {
		t.Errorf("%s %+v", got.Verdict, got.Checks)
	}
}

func TestParity(t *testing.T) {
	browser := comparetest.Browser(6)
	alike := result(t, browser, comparetest.Native(6))
	browser.IDs = append(append([]int{}, browser.IDs[:32]...), comparetest.IDs(65)[33:]...)
	apart := result(t, browser, comparetest.Native(6))
	for _, c := range []struct {
		text   string
		now    *compare.Result
		base   *compare.Result
		status gates.Status
		why    string
	}{
		{"{min_agreement: 100%}", alike, nil, gates.Passed, "identical"},
		{"{min_agreement: 100%}", apart, nil, gates.Failed, "different from token 33 on"},
		{"{min_agreement: 50%}", apart, nil, gates.Passed, "different from token 33 on"},
		{"{min_agreement: 51%}", apart, nil, gates.Failed, "32 of 64"},
		{"{first_divergence: 33}", apart, nil, gates.Passed, ""},
		{"{first_divergence: 34}", apart, nil, gates.Failed, ""},
		{"{first_divergence: 34, level: warn}", apart, nil, gates.Warned, ""},
		{"{min_agreement: 100%, engine: ollama}", apart, nil, gates.Inconclusive,
			"no two cells generated a text"},
		{"{min_agreement: 100%, with: baseline}", apart, nil, gates.Inconclusive, "no baseline run"},
		{"{min_agreement: 100%, with: baseline, engine: webllm}", apart, alike, gates.Failed,
			"different from token 33 on"},
		{"{min_agreement: 100%, with: baseline, engine: llamacpp}", apart, alike, gates.Passed, "identical"},
	} {
		got := gate.Evaluate(parse(t, "gone: off\nparity: "+c.text), c.now, c.base)
		expect(t, one(t, got, "same output"), c.status, c.why)
	}
}

func busyMachine(r *record.Run) {
	r.Environment.Background = &record.Background{Seconds: 0.2, Cores: 2}
}

// Launches that took turns met the same load; the gate remarks on it once.
func TestGateNotesLoadOfBothSides(t *testing.T) {
	run, base := comparetest.Run(t, "run", comparetest.Native(8)), comparetest.Run(t, "base", comparetest.Native(8))
	run.Meta.Against = "base"
	busyMachine(run)
	got := gate.Evaluate(parse(t, "vs_baseline: {decode_tps: -5%, ttft_ms: +10%}"), compare.Runs(run), compare.Runs(base))
	if text := strings.Join(got.Notes, "\n"); strings.Count(text, "both sides ran on a busy machine: ") != 1 {
		t.Errorf("notes:\n%s", text)
	}
}

// Whatever a cell has a figure of, a gate can judge by its name.
func TestGateKnowsEveryFigure(t *testing.T) {
	browser := comparetest.Measured(comparetest.Browser(6), comparetest.Page())
	cells := result(t, browser, comparetest.Loaded(comparetest.Native(6), 3, 2, 4)).Cells
	all := slices.Concat(cells[0].Figures, cells[0].Sampler, cells[1].Load.Figures)
	if len(all) < 40 {
		t.Fatalf("%d figures", len(all))
	}
	for _, f := range all {
		if _, err := figure.Find(f.Name); err != nil {
			t.Errorf("%v: add it to internal/figure/table.go", err)
		}
	}
}

// scoring makes an engine that scored two windows. Its tokens are less probable than others' by a factor, and at some
// places it prefers another token.
func scoring(lower float64, others int) comparetest.Engine {
	e := comparetest.Native(2)
	e.Scored = record.Scoring{Reference: e.Cell.ID, PromptIDs: []int{1, 2}, Top: 2,
		Window: &record.Window{Text: "builtin", SHA256: "5f", Of: 2}}
	for i := range 200 {
		likely, next := record.Candidate{ID: 7, LogProb: math.Log(0.5 * lower)}, record.Candidate{ID: 8, LogProb: -2}
		top := []record.Candidate{likely, next}
		if i < others {
			next.LogProb = likely.LogProb
			top = []record.Candidate{next, likely}
		}
		e.Scores = append(e.Scores, record.Score{Forced: 7, LogProb: likely.LogProb, Top: top})
	}
	return e
}

// Perplexity, KL divergence and agreement are compared with what the baseline run's cell made of the same windows.
func TestQualityAgainstBaseline(t *testing.T) {
	g := parse(t, "perplexity: {vs_baseline: +0.5%}\nkl_divergence: {vs_baseline: +0.01%}\n"+
		"vs_baseline: {top1_agreement: -1%}")
	base := result(t, scoring(1, 0))
	for name, c := range map[string]struct {
		now             comparetest.Engine
		ppl, kl, agrees gates.Status
		why             string
	}{
		"unchanged":           {scoring(1, 0), gates.Passed, gates.Passed, gates.Passed, "baseline run 2: 0% on 2 windows"},
		"1% worse":            {scoring(1/1.01, 0), gates.Failed, gates.Passed, gates.Passed, "2.02, baseline run 2: +1%"},
		"other probabilities": {scoring(0.9, 0), gates.Failed, gates.Failed, gates.Passed, "baseline run 2: +11.11%"},
		"other choices":       {scoring(1, 3), gates.Passed, gates.Failed, gates.Failed, "0% on 2 windows"},
	} {
		out := gate.Evaluate(g, result(t, c.now), base)
		expect(t, one(t, out, "perplexity"), c.ppl, c.why)
		expect(t, one(t, out, "kl_divergence_nats from the baseline run at most 0.0001"), c.kl, "nats from the")
		expect(t, one(t, out, "top1_agreement_percent with the baseline run at least 99"), c.agrees, "% with the")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	other := scoring(1, 0)
	other.Scored.PromptIDs = []int{3}
	expect(t, one(t, gate.Evaluate(g, result(t, other), base), "perplexity"), gates.Inconclusive,
		"the baseline run scored another text")
	expect(t, one(t, gate.Evaluate(g, result(t, comparetest.Native(2)), base), "perplexity"), gates.Inconclusive,
		"the run has no perplexity")
}

// A perplexity without the tokens that an engine cannot report is too low: it passes no check, but fails those that it
// is too high for.
func TestPerplexityWithoutTokensDoesNotPass(t *testing.T) {
	g := parse(t, "perplexity: {max: 3, vs_baseline: +0.5%}")
	before, now := scoring(1, 0), scoring(1, 0)
	before.Scores[1].Forced, now.Scores[1].Forced, now.Scores[1].LogProb = 9, 9, math.NaN()
	out := gate.Evaluate(g, result(t, now), result(t, before))
	expect(t, one(t, out, "perplexity at most 3"), gates.Inconclusive, "1 of 200 log-probabilities are missing")
	expect(t, one(t, out, "perplexity at most 0.5%"), gates.Inconclusive, "1 of 200 log-probabilities are missing")
}

// A check of an axis is about the cells with its values alone.
func TestScopeIsAnyAxis(t *testing.T) {
	var engines []comparetest.Engine
	for i, ubatch := range []string{"64", "128", "256"} {
		e := comparetest.Native(6)
		e.Cell.ID, e.Cell.Settings = 10+i, map[string]string{"ubatch": ubatch}
		engines = append(engines, e)
	}
	now := compare.Runs(comparetest.Run(t, "now", engines...))
	for name, want := range map[string]int{"llamacpp.ubatch": 2, "ubatch": 2} {
		max := gates.Limit{Max: new(1e9), Scope: gates.Scope{name: {"64", "256"}}, Figure: figure.Of(figure.TTFT)}
		n := 0
		for _, c := range gate.Evaluate(&gates.Gate{Limits: []gates.Limit{max}}, now, nil).Checks {
			if c.Kind == gates.KindLimit {
				if n++; strings.Contains(c.Cell, "128") {
					t.Errorf("%s checks %s", name, c.Cell)
				}
			}
		}
		if n != want {
			t.Errorf("%s: %d checks, want %d", name, n, want)
		}
	}
}
