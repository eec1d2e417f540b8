package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"llmparity/assets/page"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/model"
	"llmparity/internal/plan"
	"llmparity/internal/progress"
	"llmparity/internal/resolve"
	"llmparity/internal/tiny"
)

// resolved reads a run's plan.
func resolved(t *testing.T, run string) plan.Plan {
	t.Helper()
	text := readFile(t, filepath.Join(run, "plan.yaml"))
	p, err := plan.Parse([]byte(text), "plan.yaml", kinds.All...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// A run's plan has all settings, so that running it again is the same run.
func TestResolvedPlanRepeatsRun(t *testing.T) {
	t.Parallel()
	// The plan's own kernels would take SwiftShader ten seconds to compile; the flag overrules them.
	cmd := program(t, "run", "-q", "plan.yaml", "--kernels", "software", "--sort", "full", "--threads", "2",
		"--adapter", "swiftshader", "--thread", "worker")
	text := "name: p\nengines: [webllm, llamacpp]\nkernels: gpu\nmodel: tiny\nprompts: [the]\nmax_tokens: 4\nwarmup: {launches: 0, tokens: 1}\nrepetitions: 1\ntimeout: 3m\n"
	put(t, cmd.Dir, "plan.yaml", text)
	well(t, cmd)
	first := filepath.Join(cmd.Dir, "results", "latest")
	p := resolved(t, first)
	versions := map[string]string{"webllm_version": page.WebLLM}
	want := plan.Plan{Threads: 2, DType: "f32", Versions: versions, Context: 1024,
		Axes: plan.Axes{Weights: []string{"as-is"}}}
	got := plan.Plan{Threads: p.Threads, DType: p.DType, Versions: p.Versions, Context: p.Context, Axes: p.Axes}
	said := engine.Section{"kernels": "software", "sort": "full", "adapter": "swiftshader", "thread": "worker"}
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(p.Sections["webllm"], said) {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Run again, nothing would be added to it.
	f := new(runFlags)
	check(t, f.follow(p, func(string) bool { return false }))
	show := progress.New(io.Discard, true)
	defer show.Close()
	again, err := f.ready(t.Context(), f.resolver(true, show.Say, io.Discard), p, show)
	check(t, err)
	if !reflect.DeepEqual(p, again.Plan) {
		t.Errorf("%+v, then %+v", p, again.Plan)
	}
	if a := policies(t, first); len(a) != 2 || a["llamacpp"]["threads"] != "2" ||
		!strings.Contains(a["webllm"]["model_library"], "software kernels, full sort") ||
		a["webllm"]["thread"] != "worker" {
		t.Errorf("%v", a)
	}
}

// policies are the recorded settings by engine.
func policies(t *testing.T, run string) map[string]map[string]string {
	t.Helper()
	r := opened(t, run)
	cells := map[int]string{}
	for _, c := range r.Cells {
		cells[c.ID] = c.Engine
	}
	out := map[string]map[string]string{}
	for _, a := range r.Attempts {
		for _, e := range a.Events {
			if e.Engine != nil {
				out[cells[a.Cell]] = e.Engine.Policy // the last one, of the loaded model
			}
		}
	}
	return out
}

func TestDefaultContextIsModelsMaximum(t *testing.T) {
	for _, c := range []struct {
		own, context int
		want         int
		reported     bool
	}{{512, -1, 512, false}, {8192, -1, resolve.MaxUnasked, true}, {8192, 0, 8192, false},
		{8192, 5120, 5120, false}} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		check(t, tiny.WriteRandomFile(t.Context(), path, tiny.Spec{Context: c.own}))
		text := "engines: [llamacpp]\nmodel: " + path + "\nprompts: [the]\nmax_tokens: 2\n"
		if c.context >= 0 {
			text += fmt.Sprintf("context: %d\n", c.context)
		}
		p, err := plan.Parse([]byte(text), "plan.yaml", kinds.All...)
		check(t, err)
		f, stderr := new(runFlags), &bytes.Buffer{}
		check(t, f.follow(p, func(string) bool { return false }))
		show := progress.New(stderr, false)
		got, err := f.ready(t.Context(), f.resolver(true, show.Say, io.Discard), p, show)
		check(t, err)
		show.Close()
		written, err := got.Plan.YAML()
		check(t, err)
		if m := got.Setups[0].Model; got.Context != c.want || m.Context != c.want || m.MaxContext != c.own {
			t.Errorf("%+v: context %d of %+v", c, got.Context, m)
		}
		if strings.Contains(stderr.String(), "context: 4096 tokens of the model's 8192") != c.reported ||
			strings.Contains(string(written), "# of the model's 8192; --context 0 uses all") != c.reported {
			t.Errorf("%+v:\n%s%s", c, stderr, written)
		}
	}
}

// An engine gets the context that was resolved, and the report says that the model has more.
func TestContextIsCapped(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "plan.yaml", "--context", "5120")
	put(t, cmd.Dir, "plan.yaml", "name: p\nengines: [llamacpp]\nmodel: m.gguf\nprompts: [the]\nmax_tokens: 2\n"+
		"warmup: {launches: 0, tokens: 1}\nrepetitions: 1\ntimeout: 1m\ncontext: 256\n")
	check(t, tiny.WriteRandomFile(t.Context(), filepath.Join(cmd.Dir, "m.gguf"), tiny.Spec{Context: 8192}))
	well(t, cmd)
	r := recorded(t, cmd.Dir)
	if m := r.Cells[0].Model; m.Context != 5120 || m.MaxContext != 8192 || resolved(t, r.Dir).Context != 5120 {
		t.Errorf("the record has %+v", m)
	}
	if policy := policies(t, r.Dir)["llamacpp"]; policy["context"] != "5120" {
		t.Errorf("%v", policy)
	}
	mentions(t, readFile(t, filepath.Join(r.Dir, "report.html")), "capped")
}

func TestWatchdogIsWrittenIfSupported(t *testing.T) {
	for engine, want := range map[string]time.Duration{"exec:./mine": engine.Watchdog, "llamacpp": 0,
		"webllm": engine.Watchdog} {
		p, err := plan.Parse([]byte("engines: ['"+engine+"']\nmodel: tiny\nprompts: [a]\nmax_tokens: 2\n"), "p.yaml",
			kinds.All...)
		check(t, err)
		new(runFlags).complete(&p, tinyOf(t))
		if time.Duration(p.Watchdog) != want {
			t.Errorf("%s: %v", engine, time.Duration(p.Watchdog))
		}
	}
}

func tinyOf(t *testing.T) engine.Model {
	t.Helper()
	m, err := (model.Finder{}).Find(t.Context(), model.Tiny, 0)
	check(t, err)
	return m
}

func TestWrongPlansAreRefused(t *testing.T) {
	t.Parallel()
	const whole = "name: p\nengines: [webllm]\nmodel: tiny\nprompts: [the]\nmax_tokens: 2\nwarmup: {launches: 0, tokens: 1}\nrepetitions: 1\ntimeout: 1m\n"
	for _, c := range []struct {
		text string
		args []string
		kind fault.Kind
		want string
	}{
		{strings.Replace(whole, "prompts: [the]\n", "", 1), nil, fault.Usage, "prompts: missing"},
		{whole + "kernels: fast\n", nil, fault.Usage, "plan.yaml:9: kernels"},
		{whole + "model_lib: x.wasm\n", []string{"--kernels", "gpu"}, fault.Usage, "model_lib"},
		{whole + "webllm_bundle: none.js\n", nil, fault.NoBundle, "none.js"},
		{whole + "webllm_bundle: plan.yaml\n", nil, fault.NoBundle, "plan.yaml is not a WebLLM module"},
		{whole + "webllm_version: 0.2.80\n", []string{"--webllm-bundle", "plan.yaml"}, fault.NoBundle,
			"plan.yaml is not a WebLLM module"},
		{whole, []string{"--webllm-bundle", "plan.yaml"}, fault.NoBundle, "plan.yaml is not a WebLLM module"},
		{whole + "model_lib: none.wasm\n", nil, fault.BadLibrary, "none.wasm"},
		{whole + "adapter: swiftshader\ndtype: f16\n", nil, fault.NoF16, "--dtype f32"},
		{whole, []string{"--mirror", "m"}, fault.Usage, "tiny is not in it"},
		{whole, []string{"--mirror", "m", "--model", "some.gguf"}, fault.Usage, "some.gguf is not in it"},
		{whole, []string{"--context", "-5"}, fault.Usage, "context: -5"},
		{whole, []string{"--model", "Nobody-1.5B-v1.0-q4f32_1"}, fault.UnknownModel, "Nobody-1.5B-v1.0-q4f32_1"},
	} {
		cmd := program(t, append([]string{"run", "-q", "plan.yaml"}, c.args...)...)
		put(t, cmd.Dir, "plan.yaml", c.text)
		refusal(t, cmd, c.kind, c.want)
	}
}
