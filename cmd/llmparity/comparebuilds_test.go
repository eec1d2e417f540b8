package main

import (
	"strings"
	"testing"

	"llmparity/assets/plans"
	"llmparity/internal/bench/plan"
	"llmparity/internal/gates"
	"llmparity/internal/kinds"
)

// The tolerances of compare-builds are in the plan that the run records, so that `llmparity gate DIR` has them, too.
func TestCompareBuildsRecordsItsTolerances(t *testing.T) {
	lightTest(t)
	file := put(t, t.TempDir(), "gate.yaml", "vs_baseline: {ttft_ms: +9%}\n")
	for _, of := range []struct {
		flags []string
		want  string // tolerances
		level gates.Level
	}{
		{[]string{"--vs-baseline", "decode_tps=-8%", "--vs-baseline", "peak_pss_mb=+4%", "--inconclusive", "warn"},
			"decode_tps -8%, peak_pss_mb +4%", gates.Warn},
		{[]string{"--thresholds", file}, "ttft_ms +9%", ""},
		{[]string{"--inconclusive", "off"}, "", gates.Off},
	} {
		var f buildsFlags
		c := compareBuilds(&f)
		check(t, c.ParseFlags(of.flags))
		g, err := f.gate()
		check(t, err)
		text, err := plan.Plan{Gate: g}.YAML()
		check(t, err)
		g, err = plan.GateIn(text, "plan.yaml", kinds.All...)
		check(t, err)
		if g.Tolerances() != of.want || g.Inconclusive != of.level {
			t.Errorf("%q: tolerances %q, inconclusive %q\n%s", of.flags, g.Tolerances(), g.Inconclusive, text)
		}
	}
	var none buildsFlags
	compareBuilds(&none)
	if g, err := none.gate(); g != nil || err != nil {
		t.Errorf("without flags: %+v, %v", g, err)
	}
}

// A figure of a default tolerance may have a --detect of its own, and mistakes are refused before anything is launched.
func TestCompareBuildsRefusesBadTolerances(t *testing.T) {
	lightTest(t)
	var f buildsFlags
	check(t, compareBuilds(&f).ParseFlags([]string{"--detect", "decode_tps=20%"}))
	if g, err := f.gate(); err != nil || len(g.Changes) != 3 {
		t.Errorf("%+v, %v", g, err)
	}
	const a, b = "0.2.85", "0.2.86"
	for flag, want := range map[string]string{"--vs-baseline=decode_tps=8%": "lower is worse",
		"--vs-baseline=speed=-8%": "speed", "--thresholds=no.yaml": "no.yaml"} {
		_, said, code := called("compare-builds", a, b, "--dry-run", flag)
		if code != 2 || !strings.Contains(said, want) {
			t.Errorf("%s: exit code %d, %s", flag, code, said)
		}
	}
}

func TestCompareBuildsHelp(t *testing.T) {
	lightTest(t)
	short, _, _ := called("compare-builds", "--help")
	all, said, code := called("compare-builds", "--help-all")
	mentions(t, strings.Join(strings.Fields(short), " "), "--vs-baseline string", "--help-all",
		"CPU time a token 5%", "(default tiny)", defaultPrompt)
	if code != 0 || !strings.Contains(all, "--until-figure ") || strings.Contains(all, "--preset ") ||
		strings.Contains(short, "--until-figure ") {
		t.Errorf("exit code %d, %s\n%s", code, said, all)
	}
	mentions(t, string(plans.Default), defaultPrompt)
}
