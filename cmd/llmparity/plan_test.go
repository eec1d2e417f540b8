package main

import (
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"llmparity/assets/bundle"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/progress"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
)

// resolved reads a run's plan.
func resolved(t *testing.T, run string) plan.Plan {
	t.Helper()
	_, p := following(t, readFile(t, filepath.Join(run, "plan.yaml")))
	return p
}

// A run's plan has all settings, so that running it again is the same run.
func TestResolvedPlanRepeatsRun(t *testing.T) {
	browserTest(t)
	t.Parallel()
	// The plan's own kernels would take SwiftShader ten seconds to compile; the flag overrules them.
	cmd := program(t, "run", "-q", "plan.yaml", "--kernels", "software", "--sort", "full", "--threads", "2",
		"--adapter", "swiftshader", "--thread", "worker")
	put(t, cmd.Dir, "plan.yaml", walked("engines: [webllm, llamacpp]\nkernels: gpu"))
	well(t, cmd)
	first := filepath.Join(cmd.Dir, "results", "latest")
	f, p := following(t, readFile(t, filepath.Join(first, "plan.yaml")))
	versions := map[string]string{"webllm_version": bundle.Version}
	want := plan.Plan{Threads: 2, DType: "f32", Versions: versions, Context: 1024,
		Axes: plan.Axes{Weights: []string{"as-is"}}}
	got := plan.Plan{Threads: p.Threads, DType: p.DType, Versions: p.Versions, Context: p.Context, Axes: p.Axes}
	said := engine.Section{"kernels": "software", "sort": "full", "adapter": "swiftshader", "thread": "worker"}
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(p.Sections["webllm"], said) {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Run again, nothing would be added to it.
	show := progress.New(io.Discard, true)
	defer show.Close()
	again, err := f.ready(t.Context(), resolver(t, f, p, true), show)
	check(t, err)
	if !reflect.DeepEqual(p, again.Plan) {
		t.Errorf("%+v, then %+v", p, again.Plan)
	}
	a := executed(t, first)
	if web := a["webllm"]; len(a) != 2 || a["llamacpp"].Policy["threads"] != "2" ||
		!strings.Contains(web.Library.String(), "software kernels, full sort") || web.Policy["thread"] != "worker" {
		t.Errorf("%+v", a)
	}
}

// ran are the recorded engines by name.
func executed(t *testing.T, run string) map[string]record.EngineInfo {
	t.Helper()
	r := opened(t, run)
	out := map[string]record.EngineInfo{}
	for _, a := range r.Attempts {
		out[r.CellByID(a.Cell).Engine] = lastEngine(a)
	}
	return out
}

// lastEngine is what an engine reports last, of the loaded model.
func lastEngine(a *record.Attempt) (last record.EngineInfo) {
	for _, e := range a.Events {
		if e.Engine != nil {
			last = *e.Engine
		}
	}
	return last
}

func TestDefaultContextIsModelsMaximum(t *testing.T) {
	lightTest(t)
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
		f, p := following(t, text)
		stderr := &strings.Builder{}
		show := progress.New(stderr, false)
		got, err := f.ready(t.Context(), resolver(t, f, p, true), show)
		check(t, err)
		show.Close()
		written, err := got.Plan.YAML()
		check(t, err)
		if m := got.Chosen[0].Model; got.Plan.Context != c.want || m.Context != c.want || m.MaxContext != c.own {
			t.Errorf("%+v: context %d of %+v", c, got.Plan.Context, m)
		}
		if strings.Contains(stderr.String(), "context: 4096 tokens of the model's 8192") != c.reported ||
			strings.Contains(string(written), "# of the model's 8192; --context 0 uses all") != c.reported {
			t.Errorf("%+v:\n%s%s", c, stderr, written)
		}
	}
}

// An engine gets the context that was resolved, and the report says that the model has more.
func TestContextIsCapped(t *testing.T) {
	lightTest(t)
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
	if policy := executed(t, r.Dir)["llamacpp"].Policy; policy["context"] != "5120" {
		t.Errorf("%v", policy)
	}
	mentions(t, readFile(t, filepath.Join(r.Dir, "report.html")), "capped")
}

func TestWatchdogIsWrittenIfSupported(t *testing.T) {
	lightTest(t)
	for engine, want := range map[string]time.Duration{"exec:./mine": engine.Watchdog, "llamacpp": 0,
		"webllm": engine.Watchdog} {
		f, p := following(t, "engines: ['"+engine+"']\nmodel: tiny\nprompts: [a]\nmax_tokens: 2\n")
		f.complete(&p, tinyOf(t))
		if time.Duration(p.Watchdog) != want {
			t.Errorf("%s: %v", engine, time.Duration(p.Watchdog))
		}
	}
}

func tinyOf(t *testing.T) models.Model {
	t.Helper()
	m, err := (models.Finder{}).Find(t.Context(), models.Tiny, 0)
	check(t, err)
	return m
}
