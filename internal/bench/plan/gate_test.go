package plan_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"llmparity/internal/bench/plan"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
)

const thresholds = `level: error
failed: warn
gone: off
inconclusive: warn
no_baseline: ok
under_test: [engine, "browser,kernels"]
detect: 12.5%
baseline: main
peak_pss_mb: {max: 900}
decode_tps:
  - {min: 20, engine: webllm}
  - min: 50
    engine: llamacpp
    level: warn
ttft_ms: {min: 1, max: 500.5, model: tiny, prompt: 2}
latency_ms: {max: 900, temperature: [0, 0.70], contexts: [512], dtype: float16, llamacpp.ubatch: 64}
perplexity: {max: 40, vs_baseline: +0.5%, level: warn}
vs_baseline:
  decode_tps: -5%
  peak_pss_mb: +3%
  ttft: {change: 10%, detect: 40%, level: warn, engine: "exec:./mine --fast"}
parity: {min_agreement: 99.5%, first_divergence: 32, with: baseline, input_length: 64}
scores: {max_difference: 0.5, kv_cache_dtype: q8_0}
`

func TestGateIsReadAndWritten(t *testing.T) {
	g, err := plan.ParseGate([]byte(thresholds), "gate.yaml", kinds.All...)
	check.Err(t, err)
	row := func(name string) *figure.Row {
		f, err := figure.Find(name)
		check.Err(t, err)
		return f
	}
	want := &gates.Gate{Level: gates.Error, Failed: gates.Warn, Gone: gates.Off,
		Inconclusive: gates.Warn, Baseline: "main",
		NoBaseline: "ok", UnderTest: []string{"engine", "browser", "kernels"}, Detect: 0.125,
		Limits: []gates.Limit{{Figure: row("peak_pss"), Max: new(900.0)},
			{Figure: row("decode_tps"), Min: new(20.0), Scope: gates.Scope{"engine": {"webllm"}}},
			{Figure: row("decode_tokens_per_s"), Min: new(50.0), Scope: gates.Scope{"engine": {"llamacpp"}},
				Level: gates.Warn},
			{Figure: row("ttft"), Min: new(1.0), Max: new(500.5),
				Scope: gates.Scope{"model": {"tiny"}, "prompt": {"2"}}},
			{Figure: row("latency"), Max: new(900.0), Scope: gates.Scope{"temperature": {"0", "0.7"},
				"context": {"512"}, "dtype": {"f16"}, "llamacpp.ubatch": {"64"}}},
			{Figure: row("perplexity"), Max: new(40.0), Level: gates.Warn}},
		Changes: []gates.Change{{Figure: row("perplexity"), Change: 0.005, Level: gates.Warn},
			{Figure: row("decode_tps"), Change: -0.05},
			{Figure: row("peak_pss"), Change: 0.03},
			{Figure: row("ttft"), Change: 0.1, Detect: 0.4,
				Scope: gates.Scope{"engine": {"exec:./mine --fast"}}, Level: gates.Warn}},
		Parity: &gates.Parity{MinAgreement: 0.995, FirstDiffers: 32, With: gates.TheBaseline,
			Scope: gates.Scope{"input_length": {"64"}}},
		Scores: &gates.Scores{Max: 0.5, Scope: gates.Scope{"kv_cache_dtype": {"q8_0"}}}}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("got  %+v\nwant %+v", g, want)
	}
	written, err := yaml.Marshal(g)
	check.Err(t, err)
	if again, err := plan.ParseGate(written, "again.yaml", kinds.All...); err != nil || !reflect.DeepEqual(again, g) {
		t.Errorf("written and read again: %v %+v\n%s", err, again, written)
	}
	indented := "name: p\ngate:\n  " + strings.ReplaceAll(strings.TrimSpace(thresholds), "\n", "\n  ") + "\n"
	if in, err := plan.GateIn([]byte(indented), "plan.yaml", kinds.All...); err != nil || !reflect.DeepEqual(in, g) {
		t.Errorf("within a plan: %v %+v", err, in)
	}
	if alone, err := plan.ParseGate([]byte("gate:\n  peak_pss_mb: {max: 900}\n"), "gate.yaml"); err != nil ||
		len(alone.Limits) != 1 {
		t.Errorf("below its word: %v %+v", err, alone)
	}
	if none, err := plan.GateIn([]byte("name: p\nengines: [a]\n"), "plan.yaml"); err != nil || none != nil {
		t.Errorf("a plan without: %v %+v", err, none)
	}
}

func TestWrongGatesAreRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"level: error\npeak_pss: {max: many}", `f:2: gate.peak_pss.max: must be a number, not "many"`},
		{"peak_pss: {max: 900MB}", `f:1: gate.peak_pss.max: must be a number, not "900MB"`},
		{"a: 1\npeak_pss: {max: 1}", `f:1: unknown figure or field "gate.a"; the nearest are failed, parity, latency`},
		{"level: error\n\ndecode_tsp: {min: 20}",
			`f:3: unknown figure or field "gate.decode_tsp"; the nearest are decode_tps, aggregate_tps`},
		{"vs_baselin: {decode_tps: -5%}", `the nearest are vs_baseline`},
		{"level: fatal", `f:1: gate.level: "fatal", use error, warn or off`},
		{"inconclusive: fatal", `f:1: gate.inconclusive: "fatal", use error, warn or off`},
		{"no_baseline: yes", `f:1: gate.no_baseline: "yes", use ok, or leave it out`},
		{"under_test: chrome",
			`f:1: gate.under_test: "chrome", use engine, library, kernels, browser, model, settings, all`},
		{"detect: 0%", "no number of launches rules out a change of nothing"},
		{"detect: 100%", "100%, give a share from more than 0% to less than 100%"},
		{"vs_baseline: {ttft: {change: 1%, detect: -3%}}", "-3%, give a share from more than 0% to less than 100%"},
		{"peak_pss:\n  max: 900\n  lvel: warn", `f:3: unknown field "gate.peak_pss.lvel"; did you mean "level"?`},
		{"peak_pss: {min: 9, max: 3}", `f:1: gate.peak_pss: min is 9 and max is 3: nothing lies between them`},
		{"peak_pss: {max: 1, contexts: 1k}", `f:1: gate.peak_pss.contexts: must be a whole number, not "1k"`},
		{"peak_pss: {max: 1, dtype: f12}", `f:1: gate.peak_pss.dtype: unknown value "f12"; use f32`},
		{"peak_pss: {max: 1, temperature: []}", `f:1: gate.peak_pss.temperature: no value`},
		{"peak_pss: {max: 1, context: 64, contexts: 64}", `f:1: gate.peak_pss.contexts: duplicate field`},
		{"peak_pss: {max: 1, temprature: 0}",
			`f:1: unknown field "gate.peak_pss.temprature"; did you mean "temperature"?`},
		{"vs_baseline: {ttft: {change: 1%, input_length: long}}",
			`f:1: gate.vs_baseline.ttft.input_length: must be a whole number, not "long"`},
		{"peak_pss: {engine: webllm}", `there is no limit: give max or min`},
		{"perplexity: {vs_baseline: -1%}", "f:1: gate.perplexity: higher is worse; use +1%"},
		{"peak_pss: 900", `f:1: gate.peak_pss: must be a limit such as {max: 900}, not "900"`},
		{"peak_pss: {max: .nan}", `gate.peak_pss.max: must be a number, not ".nan"`},
		{"vs_baseline: {decode_tps: 5%}", `f:1: gate.vs_baseline.decode_tps: lower is worse; use -5%`},
		{"vs_baseline:\n  peak_pss_mb: -3%", `f:2: gate.vs_baseline.peak_pss_mb: higher is worse; use +3%`},
		{"vs_baseline: {decode_tps: -5}", `"-5" is not a percentage; use one such as -5%, +3% or 100%`},
		{"vs_baseline: {decode_tps: -100%}", `-100% allows a decrease to zero`},
		{"vs_baseline: {tokens: 0%}", `neither more nor less of this figure is better`},
		{"vs_baseline: {decode_tps: {level: warn}}", `gate.vs_baseline.decode_tps: change missing; use a share such as -5%`},
		{"vs_baseline: -5%", `gate.vs_baseline: must be a group such as {decode_tps: -5%}, not "-5%"`},
		{"parity: {min_agreement: 101%}", `min_agreement: 101%, give a share from 0% to 100%`},
		{"parity: {level: warn}", `no check; give min_agreement or first_divergence`},
		{"parity: {first_divergence: -1}", `tokens are numbered from 1`},
		{"parity: {min_agreement: 1%, with: others}", `with: "others", use engines or baseline`},
		{"parity: true", `gate.parity: must be a group such as {min_agreement: 100%}, not "true"`},
		{"peak_pss: {max: [1]}", `gate.peak_pss.max: must be a number, not a list`},
		{"peak_pss: {max: 1}\npeak_pss: {max: 2}", `f:2: mapping key "peak_pss" already defined`},
		{"- 1", "gate: must be a group such as {peak_pss_mb: {max: 900}}, not a list"},
		{"", "the file is empty; write a gate into it"},
		{"a: {", "f:1: could not find flow mapping end token '}'"},
		{"gate:", "f:1: gate: must be a group of settings, not empty"},
		{"peak_pss: {max: 1}\n---\npeak_pss: {max: 1}", "f:3: second document; a file may have only one gate"},
	} {
		_, err := plan.ParseGate([]byte(c.text), "f")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
			fault.Of(err) != fault.Usage {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestGateDetectIsAtLeastTheTolerance(t *testing.T) {
	g, err := plan.ParseGate([]byte("vs_baseline: {decode_tps: [-5%, -20%], peak_pss: +3%, ttft: {change: +10%, detect: 40%}}"), "f")
	check.Err(t, err)
	var got []float64
	for _, detect := range []float64{0, 0.1} {
		g.Detect = detect
		for _, c := range g.Changes {
			got = append(got, g.DetectOf(c))
		}
	}
	if want := []float64{-0.15, -0.2, 0.05, 0.4, -0.1, -0.2, 0.1, 0.4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := errors.Join(g.DetectFlag("8%"), g.DetectFlag("decode_tps=-30%")); err != nil || g.Detect != 0.08 ||
		g.DetectOf(g.Changes[0]) != -0.3 {
		t.Errorf("%v %+v", err, g)
	}
	for _, wrong := range []string{"0%", "100%", "load_time=5%", "x=5%", "5"} {
		if g.DetectFlag(wrong) == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

func TestGateUnderTest(t *testing.T) {
	for list, want := range map[string]string{"": "engine library kernels browser settings system",
		"all":     "engine library kernels browser settings system",
		"library": "library kernels", "kernels": "kernels",
		"all,model": "engine library kernels browser model settings system", "browser": "browser"} {
		g := gates.Gate{}
		if list != "" {
			g.UnderTest = strings.Split(list, ",")
		}
		var got []string
		for _, what := range []string{"engine", "library", "kernels", "browser", "model", "settings", "system"} {
			if g.Tests(what) {
				got = append(got, what)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}
