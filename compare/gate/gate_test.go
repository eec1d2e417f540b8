package gate_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

func parse(t *testing.T, text string) *plan.Gate {
	t.Helper()
	g, err := plan.ParseGate([]byte(text), "gate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func result(t *testing.T, engines ...comparetest.Engine) *compare.Result {
	t.Helper()
	return compare.Runs(comparetest.Run(t, "run", engines...))
}

// one is the only check whose name, cell or reason has these words.
func one(t *testing.T, g *compare.Gate, words ...string) compare.GateCheck {
	t.Helper()
	var found []compare.GateCheck
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

func expect(t *testing.T, c compare.GateCheck, status compare.GateStatus, why string) {
	t.Helper()
	if c.Status != status || !strings.Contains(c.Why, why) {
		t.Errorf("%s: %s: %s: %q, want %s: %q", c.Cell, c.Name, c.Status, c.Why, status, why)
	}
}

// Peak memory of Native is 48 MiB and a little more, its time to the first token some 9 ms.
func TestALimitIsBrokenByTheIntervalAlone(t *testing.T) {
	e := comparetest.Native(8)
	e.Vary = 0.1
	now := result(t, e)
	f := now.Cells[0].Figure(compare.TTFT)
	if f.Interval == nil || !(f.Interval.Lo < f.Center() && f.Center() < f.Interval.Hi) {
		t.Fatalf("%+v", f)
	}
	for _, c := range []struct {
		limit  plan.GateLimit
		status compare.GateStatus
		why    string
	}{
		{plan.GateLimit{Max: new(f.Interval.Lo * 0.99)}, compare.GateFailed, "more than"},
		{plan.GateLimit{Max: new(f.Interval.Lo)}, compare.GateWarned, "its interval reaches back"},
		{plan.GateLimit{Max: new((f.Interval.Lo + f.Center()) / 2)}, compare.GateWarned, "that is not sure"},
		{plan.GateLimit{Max: new(f.Center())}, compare.GatePassed, "its interval reaches beyond"},
		{plan.GateLimit{Max: new(f.Interval.Hi)}, compare.GatePassed, "the median is"},
		{plan.GateLimit{Min: new(f.Interval.Hi * 1.01)}, compare.GateFailed, "less than"},
		{plan.GateLimit{Min: new((f.Interval.Hi + f.Center()) / 2)}, compare.GateWarned, "less than"},
		{plan.GateLimit{Min: new(f.Interval.Lo), Max: new(f.Interval.Hi)}, compare.GatePassed, "the median is"},
		{plan.GateLimit{Min: new(0.0), Max: new(f.Interval.Lo * 0.99)}, compare.GateFailed, "more than"},
		{plan.GateLimit{Max: new(f.Interval.Lo * 0.99), Level: plan.GateWarn}, compare.GateWarned, "more than"},
		{plan.GateLimit{Max: new(1e9), GateScope: plan.GateScope{Engine: "webllm"}}, compare.GateUnknown, `the run has no cell of engine "webllm"; its engines are llamacpp`},
		{plan.GateLimit{Max: new(1e9), GateScope: plan.GateScope{Engine: "llamacpp", Model: "tiny", Prompt: "1"}}, compare.GatePassed, ""},
		{plan.GateLimit{Max: new(1e9), GateScope: plan.GateScope{Prompt: "Once upon a time"}}, compare.GatePassed, ""},
	} {
		var err error
		if c.limit.Figure, err = plan.GateFigureOf("ttft_ms"); err != nil {
			t.Fatal(err)
		}
		got := gate.Evaluate(&plan.Gate{Limits: []plan.GateLimit{c.limit}}, now, nil)
		expect(t, one(t, got, "ttft_ms"), c.status, c.why)
	}
	expect(t, one(t, gate.Evaluate(parse(t, "ttft: {max: 100}"), now, nil), "all launches"), compare.GatePassed, "8 launches counted")
	off := gate.Evaluate(parse(t, "peak_pss: {max: 1, level: off}\nttft: {max: 100}"), now, nil)
	if len(off.Checks) != 2 || off.Status != compare.GatePassed {
		t.Errorf("what is off is looked at: %+v", off.Checks)
	}
	absent := gate.Evaluate(parse(t, "baseline_pss: {max: 1}\nttft: {max: 100}"), now, nil)
	expect(t, one(t, absent, "baseline_pss"), compare.GateUnknown, "it was not measured")
	if absent.Status != compare.GateWarned {
		t.Errorf("%s: %s", absent.Status, absent.Verdict)
	}
}

func TestOfFewLaunchesALimitIsBrokenByAllOfThem(t *testing.T) {
	e := comparetest.Native(3)
	e.Vary = 0.1
	now := result(t, e)
	f := now.Cells[0].Figure(compare.TTFT)
	least, most := f.Values[0].Value, f.Values[0].Value
	for _, v := range f.Values {
		least, most = min(least, v.Value), max(most, v.Value)
	}
	figure, _ := plan.GateFigureOf("ttft")
	for _, c := range []struct {
		limit  float64
		status compare.GateStatus
		why    string
	}{{least * 0.99, compare.GateFailed, "3 values are too few for an interval, and what keeps to it half of the time does that once in 8"},
		{(least + f.Center()) / 2, compare.GateWarned, "but not all are"}, {f.Center(), compare.GatePassed, "too few for an interval"},
		{most, compare.GatePassed, "too few for an interval"}} {
		got := gate.Evaluate(&plan.Gate{Limits: []plan.GateLimit{{Figure: figure, Max: &c.limit}}}, now, nil)
		expect(t, one(t, got, "ttft_ms"), c.status, c.why)
	}
}

const usual = "vs_baseline: {decode_tps: -5%, peak_pss_mb: +3%, ttft_ms: {change: +10%, level: warn}}"

func TestAgainstABaseline(t *testing.T) {
	base := result(t, comparetest.Native(8), comparetest.Browser(8))
	same := gate.Evaluate(parse(t, usual), base, base)
	if same.Status != compare.GatePassed || same.Tests != 6 || len(same.Checks) != 8 {
		t.Errorf("with itself: %s, %d tests, %d checks: %s", same.Status, same.Tests, len(same.Checks), same.Verdict)
	}
	slower := comparetest.Native(8)
	slower.Token, slower.TTFT = slower.Token*5/4, slower.TTFT*3/2
	got := gate.Evaluate(parse(t, usual), result(t, slower, comparetest.Browser(8)), base)
	decode := one(t, got, "llamacpp", "decode")
	expect(t, decode, compare.GateFailed, "worse than is let pass")
	if decode.Name != "decode_tokens_per_s at most 5 % lower against the baseline" || *decode.Allowed != -5 || *decode.Percent > -15 ||
		decode.PercentInterval.Hi > -5 || *decode.PHolm > 0.05 || *decode.P > *decode.PHolm || *decode.Baseline <= *decode.Measured || decode.Launches != 8 {
		t.Errorf("%+v", decode)
	}
	expect(t, one(t, got, "llamacpp", "ttft_ms"), compare.GateWarned, "worse than is let pass")
	expect(t, one(t, got, "webllm", "decode"), compare.GatePassed, "can't be told from chance")
	if got.Status != compare.GateFailed || !strings.HasPrefix(got.Verdict, "The gate does not hold: 1 of 8 checks: llamacpp: decode_tokens_per_s") ||
		got.Checks[0].Name != decode.Name {
		t.Errorf("%s: %s", got.Status, got.Verdict)
	}
	better := gate.Evaluate(parse(t, usual), base, result(t, slower, comparetest.Browser(8)))
	expect(t, one(t, better, "llamacpp", "decode"), compare.GatePassed, "it is better")
	little := comparetest.Native(8)
	little.Vary = 0
	was := result(t, little)
	little.Token = little.Token * 103 / 100
	expect(t, one(t, gate.Evaluate(parse(t, usual), result(t, little), was), "decode"), compare.GatePassed, "within what is let pass")
	onlyOne := gate.Evaluate(parse(t, "vs_baseline: {decode_tps: {change: -5%, engine: llamacpp}}"), base, base)
	if onlyOne.Tests != 1 {
		t.Errorf("a gate over one engine asks %d questions", onlyOne.Tests)
	}
}

// What can't be judged is unknown with its reason, and a gate of which nothing could be does not hold.
func TestWhatCantBeJudgedNeverPasses(t *testing.T) {
	base := result(t, comparetest.Native(8))
	native := comparetest.Native
	for what, c := range map[string]struct {
		change func(e *comparetest.Engine, r *record.Run)
		why    string
	}{
		"machine":  {func(_ *comparetest.Engine, r *record.Run) { r.Environment.CPU = "Other" }, "the machine is another one: the processor was Example CPU 3.0 GHz and is Other"},
		"cores":    {func(_ *comparetest.Engine, r *record.Run) { r.Environment.Cores = 2 }, "the number of cores was 8 and is 2"},
		"memory":   {func(_ *comparetest.Engine, r *record.Run) { r.Environment.MemoryB = 8 << 30 }, "the memory was 24.0 GiB and is 8.0 GiB"},
		"governor": {func(_ *comparetest.Engine, r *record.Run) { r.Environment.Governor = "powersave" }, "the governor was performance and is powersave"},
		"class":    {func(e *comparetest.Engine, _ *record.Run) { e.Device.Class = record.GPU }, "the class of device is another one: it was cpu and is gpu"},
		"device":   {func(e *comparetest.Engine, _ *record.Run) { e.Device.Name = "Other" }, "the device is another one"},
		"browser": {func(e *comparetest.Engine, _ *record.Run) {
			e.Info.Parts = map[string]string{"browser": "Chromium 157.0"}
		}, "the browser is another one: it was not said and is Chromium 157.0"},
		"numbers": {func(e *comparetest.Engine, _ *record.Run) {
			e.Info.Policy = map[string]string{"kv_dtype": "f16", "weights_dtype": "f32"}
		}, "kv dtype was f32 and is f16"},
		"model":   {func(e *comparetest.Engine, _ *record.Run) { e.Cell.Model.SHA256 = "ffff" }, "the model's file was 9a0c3b5d7e and is ffff"},
		"context": {func(e *comparetest.Engine, _ *record.Run) { e.Cell.Model.Context = 512 }, "the context was 256 and is 512"},
	} {
		e := native(8)
		c.change(&e, &record.Run{})
		run := comparetest.Run(t, "run", e)
		c.change(&comparetest.Engine{}, run)
		got := gate.Evaluate(parse(t, "vs_baseline: {decode_tps: -5%}"), compare.Runs(run), base)
		check := one(t, got, "decode")
		expect(t, check, compare.GateUnknown, c.why)
		if got.Status != compare.GateFailed || !strings.Contains(got.Verdict, "none of what it asks could be judged") || got.Tests != 0 {
			t.Errorf("%s: %s: %s", what, got.Status, got.Verdict)
		}
		lenient := gate.Evaluate(parse(t, "unknown: off\nvs_baseline: {decode_tps: -5%}"), compare.Runs(run), base)
		if lenient.Status != compare.GatePassed || one(t, lenient, "decode").Status != compare.GateUnknown {
			t.Errorf("%s, where nobody wants to know: %s", what, lenient.Verdict)
		}
	}
	few := gate.Evaluate(parse(t, "vs_baseline: {decode_tps: -5%}"), result(t, native(3)), result(t, native(3)))
	expect(t, one(t, few, "decode"), compare.GateUnknown, "n = 3 and 3 are too few runs to tell a change from chance: it takes 6 launches a side")
	reused := native(8)
	reused.Reused, reused.Cell.Reused = true, true
	shared := gate.Evaluate(parse(t, "vs_baseline: {decode_tps: -5%}"), result(t, reused), result(t, reused))
	expect(t, one(t, shared, "decode"), compare.GateUnknown, "repetitions that share one count once")
	without := gate.Evaluate(parse(t, "vs_baseline: {decode_tps: -5%}\npeak_pss: {max: 900}"), result(t, native(8)), nil)
	expect(t, one(t, without, "decode"), compare.GateUnknown, "there is no baseline")
	if without.Status != compare.GateWarned {
		t.Errorf("%s: %s", without.Status, without.Verdict)
	}
	if strict := gate.Evaluate(parse(t, "unknown: error\nvs_baseline: {decode_tps: -5%}\npeak_pss: {max: 900}"), result(t, native(8)), nil); strict.Status != compare.GateFailed {
		t.Errorf("%s: %s", strict.Status, strict.Verdict)
	}
}

// A figure that others have made worse is not held against the engine, nor does it pass.
func TestWhatOthersHaveDoneIsUnknown(t *testing.T) {
	base := comparetest.Run(t, "base", comparetest.Native(8))
	slower := comparetest.Native(8)
	slower.Token *= 2
	g := parse(t, "vs_baseline: {decode_tps: -5%, peak_pss_mb: +3%}")
	busy := comparetest.Run(t, "busy", slower)
	busy.Environment.Background = &record.Background{Seconds: 1, Cores: 6}
	got := gate.Evaluate(g, compare.Runs(busy), compare.Runs(base))
	expect(t, one(t, got, "decode"), compare.GateUnknown, "worse than is let pass, but others were busy on the machine of the run")
	if got.Status != compare.GateWarned {
		t.Errorf("%s", got.Verdict)
	}
	calm, beset := comparetest.Native(8), slower
	calm.Stolen = func(n int) float64 { return 0.01 * float64(n%3) }
	beset.Stolen = func(n int) float64 { return 0.03 + 0.01*float64(n%3) }
	beset.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 60, Shared: 3}}
	got = gate.Evaluate(g, result(t, beset), result(t, calm))
	expect(t, one(t, got, "decode"), compare.GateUnknown, "worse than is let pass, but a hypervisor gave ")
	expect(t, one(t, got, "peak_pss"), compare.GateFailed, "worse than is let pass") // memory is nobody's to steal
	beset.Stolen = calm.Stolen
	expect(t, one(t, gate.Evaluate(g, result(t, beset), result(t, calm)), "decode"), compare.GateFailed, "worse than is let pass")
	beset.Stolen = nil // the baseline's machine told, this one's does not
	expect(t, one(t, gate.Evaluate(g, result(t, beset), result(t, calm)), "decode"), compare.GateFailed, "worse than is let pass")
	bigger := comparetest.Native(8)
	bigger.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 60, Shared: 3}}
	expect(t, one(t, gate.Evaluate(g, result(t, bigger), compare.Runs(base)), "peak_pss"), compare.GateFailed, "worse than is let pass")
	shared := comparetest.Native(8)
	shared.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 46, Shared: 7}}
	expect(t, one(t, gate.Evaluate(g, compare.Runs(base), result(t, shared)), "peak_pss"), compare.GateUnknown, "the sum of RSS did not grow with it")
}

func TestCellsThatAreGoneAreNewOrFailed(t *testing.T) {
	g := parse(t, usual)
	both, alone := result(t, comparetest.Native(8), comparetest.Browser(8)), result(t, comparetest.Native(8))
	gone := gate.Evaluate(g, alone, both)
	expect(t, one(t, gone, "webllm", "is there"), compare.GateFailed, "the cell is gone")
	g.Gone = plan.GateOff
	if got := gate.Evaluate(g, alone, both); got.Status != compare.GatePassed {
		t.Errorf("%s", got.Verdict)
	}
	fresh := gate.Evaluate(g, both, alone)
	if fresh.Status != compare.GatePassed || len(fresh.Notes) == 0 || !strings.Contains(fresh.Notes[0], "webllm is new") || fresh.Tests != 3 {
		t.Errorf("%s, %q, %d", fresh.Verdict, fresh.Notes, fresh.Tests)
	}
	// What has nothing to be held against is not let pass, even where nobody minds what is gone.
	another := gate.Evaluate(g, alone, result(t, comparetest.Browser(8)))
	expect(t, one(t, another, "llamacpp", "decode"), compare.GateUnknown, "the cell is new")
	if another.Status != compare.GateFailed || !strings.Contains(another.Verdict, "none of what it asks could be judged") {
		t.Errorf("%s: %s", another.Status, another.Verdict)
	}
	failing := comparetest.Native(8)
	failing.Failing = map[int]record.Class{3: "device-lost"}
	got := gate.Evaluate(parse(t, "peak_pss: {max: 900}"), result(t, failing), nil)
	expect(t, one(t, got, "all launches"), compare.GateFailed, "1 of 8 came to nothing, the first: device-lost")
	if got := gate.Evaluate(parse(t, "failed: warn\npeak_pss: {max: 900}"), result(t, failing), nil); got.Status != compare.GateWarned {
		t.Errorf("%s", got.Verdict)
	}
	newer := comparetest.Native(8)
	newer.Info.Version = "b12000"
	if got := gate.Evaluate(g, result(t, newer), alone); got.Status != compare.GatePassed || len(got.Notes) != 1 ||
		got.Notes[0] != "llamacpp is another version: b11434 in the baseline, b12000 in the run" {
		t.Errorf("%s %q", got.Verdict, got.Notes)
	}
}

// Cells of two versions of an engine were asked for the same: each is held against its own.
func TestVersionsOfAnEngineAreMatched(t *testing.T) {
	older, newer := comparetest.Native(8), comparetest.Native(8)
	newer.Cell.ID, newer.Info.Version, newer.Token = 3, "b12000", 2*newer.Token
	g := parse(t, "vs_baseline: {decode_tps: -5%}")
	if got := gate.Evaluate(g, result(t, newer, older), result(t, older, newer)); got.Status != compare.GatePassed || len(got.Checks) != 4 {
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
		status compare.GateStatus
		why    string
	}{
		{"{min_agreement: 100%}", alike, nil, compare.GatePassed, "identical"},
		{"{min_agreement: 100%}", apart, nil, compare.GateFailed, "different from token 33 on"},
		{"{min_agreement: 50%}", apart, nil, compare.GatePassed, "different from token 33 on"},
		{"{min_agreement: 51%}", apart, nil, compare.GateFailed, "32 of 64"},
		{"{first_divergence: 33}", apart, nil, compare.GatePassed, ""},
		{"{first_divergence: 34}", apart, nil, compare.GateFailed, ""},
		{"{first_divergence: 34, level: warn}", apart, nil, compare.GateWarned, ""},
		{"{min_agreement: 100%, engine: ollama}", apart, nil, compare.GateUnknown, "no two cells said something"},
		{"{min_agreement: 100%, with: baseline}", apart, nil, compare.GateUnknown, "there is no baseline"},
		{"{min_agreement: 100%, with: baseline, engine: webllm}", apart, alike, compare.GateFailed, "different from token 33 on"},
		{"{min_agreement: 100%, with: baseline, engine: llamacpp}", apart, alike, compare.GatePassed, "identical"},
	} {
		got := gate.Evaluate(parse(t, "gone: off\nparity: "+c.text), c.now, c.base)
		expect(t, one(t, got, "the same words"), c.status, c.why)
	}
}

// Nothing in an outcome hangs on chance or on time, but for when it was judged.
func TestTheSameIsJudgedTheSame(t *testing.T) {
	base, now := result(t, comparetest.Native(8), comparetest.Browser(8)), result(t, comparetest.Native(8), comparetest.Browser(8))
	text := func() string {
		g := gate.Evaluate(parse(t, usual+"\npeak_pss_mb: {max: 40}\nparity: {min_agreement: 100%}"), now, base)
		g.Judged = time.Time{}
		b, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if a, b := text(), text(); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}
