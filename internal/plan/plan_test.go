package plan_test

import (
	"reflect"
	"strings"
	"testing"

	"llmparity/assets/plans"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
)

func TestDefaultPlanRoundTrip(t *testing.T) {
	p, err := plan.Parse(plans.Default, "default.yaml", kinds.All...)
	if err != nil {
		t.Fatal(err)
	}
	if p.Repetitions != 6 || p.Warmup.Launches != 1 || p.MaxTokens != 64 || len(p.Engines) != 2 {
		t.Errorf("the default plan is %+v", p)
	}
	if p.Context != plan.Unsaid {
		t.Errorf("context %d instead of the default", p.Context)
	}
	// As it is when everything is resolved, and each field of use.
	p.Context, p.DType, p.Threads = 512, "f32", 2
	p.Versions = map[string]string{"webllm_version": "0.2.83"}
	p.Say("webllm", engine.Section{"adapter": "swiftshader", "kernels": "gpu", "sort": "full"})
	text, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.Parse(text, "resolved", kinds.All...)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if !reflect.DeepEqual(p, again) {
		t.Errorf("written and read again: %+v, want %+v", again, p)
	}
}

func TestContextValues(t *testing.T) {
	for old, want := range map[string]int{"# context: 1024 ": plan.Unsaid, "context: 0 ": 0, "context: 64 ": 64} {
		p, err := plan.Parse([]byte(strings.Replace(string(plans.Default), "# context: 1024 ", old, 1)), "p.yaml",
			kinds.All...)
		if err != nil || p.Context != want {
			t.Errorf("%s: %d, %v", old, p.Context, err)
		}
	}
	p := plan.Plan{Name: "x", Context: 4096, ContextNote: "of 8192"}
	if text, err := p.YAML(); err != nil || !strings.Contains(string(text), "context: 4096 # of 8192\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestErrorsNameFileAndLine(t *testing.T) {
	good := string(plans.Default)
	for _, c := range []struct{ old, new, want string }{
		{"max_tokens: 64", "max_token: 64", `p.yaml:7: unknown field "max_token"; did you mean "max_tokens"?`},
		{"max_tokens: 64", "max_tokens: many", `p.yaml:7: max_tokens: must be a whole number, not "many"`},
		{"# context: 1024 ", "context: 1 ", "p.yaml:9: context: 1 is too small; use at least 2, or 0 for the model's maximum"},
		{"tokens: 8 ", "tokens: 0 ", "p.yaml:12: warmup.tokens: 0 is too small; use at least 1"},
		{"# threads: 1 ", "threads: -1 ", "threads: -1 is too small; use at least 1"},
		{"# threads: 1 ", "thread_count: 1 ",
			`p.yaml:29: unknown field "thread_count"; did you mean "thread_counts"?`},
		{"timeout: 3m ", "timeout: 3 ", "not a duration"},
		{"timeout: 3m ", "timeout: 0s ", "timeout: must be a duration such as 3m"},
		{"name: default", "name: ../x", `p.yaml:2: name: "../x" is invalid; use up to 100 letters, digits, dots, dashes and underscores`},
		{"name: default\n", "name: \"\"\n", "p.yaml:2: name: missing; it becomes the name of the run's folder"},
		{"name: default", "name: [default]", "p.yaml:2: name: must be text, not a list"},
		{"[webllm, llamacpp]", "[webllm, webllm]", "engines: duplicate engine webllm"},
		{"[webllm, llamacpp]", "[webllm", "p.yaml:4: ',' or ']' must be specified"},
		{"temperature: 0", "temperature: 0.7", "temperature: 0.7"},
		{"isolation: launch", "isolation: tab", `p.yaml:14: isolation: unknown value "tab"; use launch, reused or shared`},
		{"watchdog: 1m", "watchdog: 1ms", "watchdog: 1ms is too short; use at least 1s"},
		{"check_oom: true", "check_oom: [true]", "p.yaml:20: check_oom: must be true or false, not a list"},
		{"check_oom: true", "check_oom: \"false\"",
			`p.yaml:20: check_oom: must be true or false, not "false"`},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%q is not in the default plan", c.old)
		}
		_, err := plan.Parse([]byte(text), "p.yaml", kinds.All...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", c.new, err, c.want)
		}
		if fault.Of(err) != fault.Usage {
			t.Errorf("%s: class %s", c.new, fault.Of(err))
		}
	}
}

// A plan that is read is valid, survives writing and reading, and has as many cells as counted.
func FuzzParse(f *testing.F) {
	for _, name := range plans.Names() {
		text, err := plans.Preset(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add(plans.Default)
	f.Add(plans.Init)
	f.Add([]byte("a: &a [*a]\nname: x"))
	for text := range bombs() {
		if len(text) < 10_000 {
			f.Add([]byte(text))
		}
	}
	for _, c := range wrong {
		f.Add([]byte(c.text))
	}
	for _, text := range right {
		f.Add([]byte(text))
	}
	f.Add([]byte(head + "prompts: " + strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := plan.Parse(text, "p.yaml", kinds.All...)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Errorf("an accepted plan is not valid: %v", err)
		}
		_, counted, err := p.Count()
		if err != nil {
			t.Fatal(err)
		}
		cells := 0
		for s := range p.Setups() {
			cells += s.Cells()
		}
		if cells != counted {
			t.Errorf("%d cells are counted, %d made", counted, cells)
		}
		written, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		p.DefaultEngines = false // the plan that is written names them
		if again, err := plan.Parse(written, "p.yaml", kinds.All...); err != nil || !reflect.DeepEqual(p, again) {
			t.Errorf("read again: %v\n%s\n%+v\n%+v", err, written, p, again)
		}
	})
}
