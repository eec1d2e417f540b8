package plan_test

import (
	"reflect"
	"strings"
	"testing"

	"llmparity/assets/plans"
	"llmparity/internal/bench/plan"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
)

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

// A plan that is read is valid, survives writing and reading, and each of its cells has a setup.
func FuzzParse(f *testing.F) {
	for _, text := range right(f) {
		f.Add([]byte(text))
	}
	f.Add([]byte("a: &a [*a]\nname: x"))
	for _, gate := range []string{"vs_baseline: {decode_tps: -0.001%}", "parity: {min_agreement: 1e-9%}",
		"ttft: [{max: 1}, {min: 1e300}]", "peak_pss: {<<: *a}", "ttft: {max: 0x10}", "detect: 7%",
		"inconclusive: off"} {
		f.Add([]byte(head + body + "gate: {" + gate + "}\n"))
	}
	for text := range bombs() {
		if len(text) < 10_000 {
			f.Add([]byte(text))
		}
	}
	for _, c := range wrong {
		f.Add([]byte(c.text))
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
		if m, err := p.Expand(); err == nil {
			cells := 0
			for _, s := range m.Setups {
				cells += len(s.Cells)
			}
			if cells != len(m.Cells) {
				t.Errorf("setups have %d of %d cells", cells, len(m.Cells))
			}
		}
		writtenAndRead(t, p)
	})
}

// writtenAndRead returns a plan as it is written, and fails if it is not read again as it was.
func writtenAndRead(t *testing.T, p plan.Plan) []byte {
	t.Helper()
	written, err := p.YAML()
	check.Err(t, err)
	p.DefaultEngines = false // the plan that is written names them
	again, err := plan.Parse(written, "p.yaml", kinds.All...)
	if err != nil || !reflect.DeepEqual(plan.Bare(p), plan.Bare(again)) {
		t.Errorf("read again: %v\n%s\n%+v\n%+v", err, written, p, again)
	}
	return written
}
